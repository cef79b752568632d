// TensorFlow's checkpoints (make_golden.py) as we read and would write them, and ours as TensorFlow was seen to read
// them (check_exported.py).
#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/tensorflow_export.h"
#include "chief/checkpoint/tensorflow_test_state.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"
#include "common/tensor/bf16.h"
#include "common/tensor/half.h"
#include "common/tensorflow_bundle/bundle_reader.h"
#include "common/tensorflow_bundle/table.h"
#include "common/tensorflow_bundle/variable_names.h"

namespace lockstep {
namespace {

using chief::TensorflowChoice;

std::unique_ptr<LocalStorage> Folder(const std::string& name) {
  return LocalStorage::Open("tests/conformance/tensorflow/" + name).value();
}

std::vector<std::string> FilesOf(const Storage& storage) {
  std::vector<std::string> names;
  const std::vector<DirectoryEntry> entries = storage.List("").value();
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

// The elements as numbers.
std::vector<double> ValuesOf(DType dtype, const std::string& bytes) {
  std::vector<double> values;
  const auto each = [&](auto element, const std::function<double(decltype(element))>& number) {
    for (size_t at = 0; at < bytes.size(); at += sizeof element) {
      std::memcpy(&element, bytes.data() + at, sizeof element);
      values.push_back(number(element));
    }
  };
  switch (dtype) {
    case DType::kF32:
      each(float{}, [](float value) { return value; });
      break;
    case DType::kI64:
      each(int64_t{}, [](int64_t value) { return static_cast<double>(value); });
      break;
    case DType::kF16:
      each(uint16_t{}, [](uint16_t bits) { return HalfToFloat(bits); });
      break;
    case DType::kBF16:
      each(Bf16{}, [](Bf16 value) { return static_cast<float>(value); });
      break;
    default:
      FAIL("no variable of the test has type " << DTypeName(dtype));
  }
  return values;
}

struct Expected {
  DType dtype;
  Shape shape;
  int number;  // as the variables count in make_golden.py
};

void CheckValues(const BundleReader& bundle, const VariableNames& names,
                 const std::map<std::string, Expected>& variables) {
  CHECK(names.variables().size() == variables.size());
  for (const VariableNames::Variable& variable : names.variables()) {
    INFO(variable.name);
    REQUIRE(variables.contains(variable.name));
    const Expected& expected = variables.at(variable.name);
    const BundleEntry& entry = bundle.index().entries[variable.entry];
    REQUIRE(FromTensorflowType(entry.type) == expected.dtype);
    CHECK(entry.shape == expected.shape);
    std::string bytes(entry.size, '\0');
    REQUIRE(bundle.Read(entry, absl::MakeSpan(bytes)) == absl::OkStatus());
    std::vector<double> ramp;
    for (int64_t i = 0; i < NumElements(expected.shape); ++i) {
      ramp.push_back(expected.number + static_cast<double>(i) * (IsFloating(expected.dtype) ? 0.25 : 1));
    }
    CHECK(ValuesOf(expected.dtype, bytes) == ramp);
  }
}

TEST_CASE("tensorflow: a checkpoint of objects is read, with both names of a tied variable", "[conformance]") {
  const auto bundle = BundleReader::Open(*Folder("golden"), "objects");
  REQUIRE(bundle.status() == absl::OkStatus());
  const auto graph = bundle->ReadString(*bundle->index().Find(kObjectGraphKey));
  REQUIRE(graph.status() == absl::OkStatus());

  const auto names = VariableNames::OfObjects(bundle->index(), *graph);

  REQUIRE(names.status() == absl::OkStatus());
  std::map<std::string, Expected> variables = {{"zz_tied", {DType::kF32, {3, 2}, 1}},
                                               {"features.0.bias", {DType::kBF16, {3}, 2}},
                                               {"features.1.weight", {DType::kF32, {4, 3}, 3}},
                                               {"features.1.bias", {DType::kF16, {4}, 4}},
                                               {"norm.count", {DType::kI64, {}, 5}},
                                               {"by_name.a/b.c", {DType::kF32, {2}, 6}},
                                               {"none", {DType::kF32, {0, 2}, 7}}};
  for (int i = 0; i < 40; ++i) variables[absl::StrCat("many.", i)] = {DType::kF32, {}, 8 + i};
  CheckValues(*bundle, *names, variables);
  CHECK(names->of_optimizers() == 6);  // four slots, two powers
  const auto tied = names->FindSecondName("features.0.weight");
  REQUIRE(tied.has_value());
  CHECK(names->variables()[*tied].name == "zz_tied");
}

TEST_CASE("tensorflow: a checkpoint that goes by names is read, from several data files", "[conformance]") {
  const auto bundle = BundleReader::Open(*Folder("golden"), "names");
  REQUIRE(bundle.status() == absl::OkStatus());
  CHECK(bundle->index().shards == 3);
  CHECK(bundle->index().Find(kObjectGraphKey) == nullptr);

  const auto names = VariableNames::OfNames(bundle->index());

  REQUIRE(names.status() == absl::OkStatus());
  CheckValues(*bundle, *names,
              {{"dense.kernel", {DType::kF32, {4, 3}, 1}},
               {"dense.bias", {DType::kF32, {3}, 2}},
               {"out", {DType::kF32, {2}, 3}}});
  CHECK(names->of_optimizers() == 9);  // six slots, two powers, the step
}

TEST_CASE("tensorflow: a partitioned variable is told from others", "[conformance]") {
  const auto bundle = BundleReader::Open(*Folder("golden"), "partitioned");
  REQUIRE(bundle.status() == absl::OkStatus());
  REQUIRE(bundle->index().Find("dense/kernel") != nullptr);
  CHECK(bundle->index().Find("dense/kernel")->partitioned);
  CHECK_FALSE(bundle->index().Find("dense/bias")->partitioned);
  CHECK(VariableNames::OfNames(bundle->index())->variables().size() == 3);
}

TEST_CASE("tensorflow: our index of the same entries is TensorFlow's, byte for byte", "[conformance]") {
  for (const std::string name : {"objects", "names", "partitioned"}) {
    const std::string bytes = *ReadWholeFile(*Folder("golden"), name + ".index", 1 << 20);
    INFO(name);
    const auto table = ParseTable(bytes, name);
    REQUIRE(table.status() == absl::OkStatus());
    CHECK(EncodeTable(*table) == bytes);
    if (name != "partitioned") CHECK(EncodeBundleIndex(*ParseBundleIndex(bytes, name)) == bytes);
  }
}

TEST_CASE("tensorflow: what we write is what TensorFlow was seen to read, byte for byte", "[conformance]") {
  const char* const outputs = std::getenv("TEST_UNDECLARED_OUTPUTS_DIR");
  REQUIRE(outputs != nullptr);
  const auto written = LocalStorage::Create(absl::StrCat(outputs, "/exported")).value();
  const auto write = [&](const std::string& prefix, OptimizerKind optimizer, const TensorflowChoice& choice,
                         uint64_t shard_bytes = BundleWriter::kShardBytes) {
    const MetaGraph metagraph = chief::TensorflowTestGraph(optimizer);
    MemoryStorage job;
    const auto chief = chief::SmallChief::Start(job).value();
    REQUIRE(chief->Save(chief::TensorflowTestState(metagraph, 7)).ok());
    const auto plan = chief::PlanTensorflow(metagraph, 7, choice);
    REQUIRE(chief::ExportTensorflow(chief::OpenCheckpoint(job, std::nullopt).value(), *plan, *written, prefix, nullptr,
                                    shard_bytes)
                .status() == absl::OkStatus());
  };
  std::filesystem::remove_all(absl::StrCat(outputs, "/exported"));
  std::filesystem::create_directory(absl::StrCat(outputs, "/exported"));
  write("sharded", OptimizerKind::kAdamW, {}, /*shard_bytes=*/32);
  write("sgd", OptimizerKind::kSgd, {});
  write("average", OptimizerKind::kAdamW, {.average = true});
  write("weights", OptimizerKind::kAdamW, {.weights_only = true});
  write("adam", OptimizerKind::kAdamW, {});

  // Where this differs, check_exported.py says whether the new files are right; they lie in the test's outputs.
  const auto seen = Folder("exported");
  const std::vector<std::string> files = FilesOf(*written);
  CHECK(files == FilesOf(*seen));
  for (const std::string& name : files) {
    INFO(name);
    CHECK(*ReadWholeFile(*written, name, 1 << 20) == *ReadWholeFile(*seen, name, 1 << 20));
  }
}

}  // namespace
}  // namespace lockstep
