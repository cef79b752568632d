#include "chief/checkpoint/tensorflow_export.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <optional>
#include <string>

#include "chief/checkpoint/tensorflow_test_state.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"
#include "common/tensorflow_bundle/bundle_reader.h"
#include "common/tensorflow_bundle/checkpoint_state.h"
#include "common/tensorflow_bundle/variable_names.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

constexpr int64_t kStep = 7;

struct PublishedModel {
  explicit PublishedModel(OptimizerKind optimizer = OptimizerKind::kAdamW)
      : metagraph(TensorflowTestGraph(optimizer)), state(TensorflowTestState(metagraph, kStep)) {
    const auto chief = SmallChief::Start(job).value();
    REQUIRE(chief->Save(state, /*shares=*/2).ok());
  }
  CheckpointReader Open() { return OpenCheckpoint(job, std::nullopt).value(); }
  TensorflowPlan Plan(const TensorflowChoice& choice = {}) { return PlanTensorflow(metagraph, kStep, choice).value(); }
  absl::StatusOr<TensorflowExport> Export(const std::string& prefix, const TensorflowChoice& choice = {}) {
    return ExportTensorflow(Open(), Plan(choice), home, prefix);
  }
  const std::string& BytesOf(const std::string& tensor) {
    for (size_t i = 0; i < state.layout.size(); ++i) {
      if (state.layout[i].spec.name == tensor) return state.bytes[i];
    }
    FAIL("the state has no " << tensor);
    return tensor;
  }

  MetaGraph metagraph;
  SmallState state;
  MemoryStorage job;
  MemoryStorage home;
};

// Key: bytes, of all tensors but the graph.
std::map<std::string, std::string> ReadAll(const Storage& storage, const std::string& prefix) {
  const auto reader = BundleReader::Open(storage, prefix);
  REQUIRE(reader.status() == absl::OkStatus());
  std::map<std::string, std::string> values;
  for (const BundleEntry& entry : reader->index().entries) {
    if (entry.key == kObjectGraphKey) continue;
    std::string bytes(entry.size, '\0');
    REQUIRE(reader->Read(entry, absl::MakeSpan(bytes)).ok());
    values.emplace(entry.key.substr(0, entry.key.find("/.ATTRIBUTES")), bytes);
  }
  return values;
}

VariableNames NamesIn(const Storage& storage, const std::string& prefix) {
  const auto reader = BundleReader::Open(storage, prefix);
  const auto graph = reader->ReadString(*reader->index().Find(kObjectGraphKey));
  return VariableNames::OfObjects(reader->index(), *graph).value();
}

template <typename T>
T Scalar(const std::string& bytes) {
  T value;
  REQUIRE(bytes.size() == sizeof value);
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

TEST_CASE("tensorflow export: weights, slots and counters are there bit for bit, under TensorFlow's keys",
          "[checkpoint]") {
  PublishedModel published;
  const auto exported = published.Export("ck");

  REQUIRE(exported.status() == absl::OkStatus());
  std::map<std::string, std::string> values = ReadAll(published.home, "ck");
  const auto take = [&](const std::string& key) {
    REQUIRE(values.contains(key));
    std::string bytes = values[key];
    values.erase(key);
    return bytes;
  };
  for (const auto& [key, tensor] : std::map<std::string, std::string>{
           {"model/features/0/weight", "features.0.weight"},
           {"model/features/0/bias", "features.0.bias"},
           {"model/norm/running_mean", "norm.running_mean"},
           {"model/norm/num_batches_tracked", "norm.num_batches_tracked"},
           {"model/table", "table"},
           {"model/places", "places"},
           {"model/features/0/weight/.OPTIMIZER_SLOT/optimizer/m", "exp_avg.features.0.weight"},
           {"model/features/0/weight/.OPTIMIZER_SLOT/optimizer/v", "exp_avg_sq.features.0.weight"},
           {"model/features/0/bias/.OPTIMIZER_SLOT/optimizer/m", "exp_avg.features.0.bias"},
           {"model/features/0/bias/.OPTIMIZER_SLOT/optimizer/v", "exp_avg_sq.features.0.bias"},
           {"optimizer/iter", "lockstep.step"}}) {
    INFO(key);
    CHECK(take(key) == published.BytesOf(tensor));
  }
  CHECK(Scalar<int64_t>(take("save_counter")) == 1);
  CHECK(Scalar<float>(take("optimizer/beta1_power")) == Approx(0.43046721).epsilon(1e-6));
  CHECK(Scalar<float>(take("optimizer/beta2_power")) == Approx(0.99202795).epsilon(1e-6));
  CHECK(values.empty());
}

TEST_CASE("tensorflow export: a tied weight is one variable with two names", "[checkpoint]") {
  PublishedModel published;
  REQUIRE(published.Export("ck").ok());
  const VariableNames names = NamesIn(published.home, "ck");
  CHECK(names.variables().size() == 6);
  const auto weight = names.FindSecondName("features.0.weight");
  REQUIRE(weight.has_value());
  CHECK(names.FindSecondName("head.weight") == weight);
  CHECK(names.variables()[*weight].name == "features.0.weight");
  CHECK(names.FindSecondName("norm.num_batches_tracked").has_value());
}

TEST_CASE("tensorflow export: what means nothing to TensorFlow is left out and said", "[checkpoint]") {
  PublishedModel published;
  const TensorflowPlan plan = published.Plan();
  CHECK(plan.weights == 6);
  CHECK(plan.slots == 4);
  CHECK(plan.left_out ==
        std::vector<std::string>{"lockstep.exponent.features.0.weight", "lockstep.exponent.features.0.bias"});
}

TEST_CASE("tensorflow export: the momentum of SGD, and no powers of Adam", "[checkpoint]") {
  PublishedModel published(OptimizerKind::kSgd);
  REQUIRE(published.Export("ck").ok());
  const std::map<std::string, std::string> values = ReadAll(published.home, "ck");
  CHECK(values.at("model/features/0/bias/.OPTIMIZER_SLOT/optimizer/momentum") ==
        published.BytesOf("momentum_buffer.features.0.bias"));
  CHECK(values.contains("optimizer/iter"));
  CHECK_FALSE(values.contains("optimizer/beta1_power"));
}

TEST_CASE("tensorflow export: LAMB's slots are Adam's, without powers; those of adafactor are left out",
          "[checkpoint]") {
  PublishedModel lamb(OptimizerKind::kLamb);
  REQUIRE(lamb.Export("ck").ok());
  const std::map<std::string, std::string> values = ReadAll(lamb.home, "ck");
  CHECK(values.at("model/features/0/bias/.OPTIMIZER_SLOT/optimizer/v") == lamb.BytesOf("exp_avg_sq.features.0.bias"));
  CHECK_FALSE(values.contains("optimizer/beta1_power"));

  PublishedModel adafactor(OptimizerKind::kAdafactor);
  const TensorflowPlan plan = adafactor.Plan();
  CHECK(plan.slots == 0);
  for (const char* slot : {"row_var.features.0.weight", "col_var.features.0.weight", "variance.features.0.bias"}) {
    CHECK(std::count(plan.left_out.begin(), plan.left_out.end(), slot) == 1);
  }
}

TEST_CASE("tensorflow export: the average comes as the model, and weights alone without the optimizer",
          "[checkpoint]") {
  PublishedModel published;
  REQUIRE(published.Export("average", {.average = true}).ok());
  REQUIRE(published.Export("weights", {.weights_only = true}).ok());
  const std::map<std::string, std::string> average = ReadAll(published.home, "average");
  const std::map<std::string, std::string> weights = ReadAll(published.home, "weights");
  CHECK(average.at("model/features/0/bias") == published.BytesOf("lockstep.ema.features.0.bias"));
  CHECK(average.at("model/norm/running_mean") == published.BytesOf("norm.running_mean"));
  CHECK(weights.at("model/features/0/bias") == published.BytesOf("features.0.bias"));
  for (const auto* values : {&average, &weights}) CHECK(values->size() == 7);  // six of the model, save_counter
  CHECK(NamesIn(published.home, "average").FindSecondName("head.weight").has_value());
  CHECK(published.Plan({.weights_only = true}).left_out.empty());
}

TEST_CASE("tensorflow export: small data files hold the same, and progress tells all bytes", "[checkpoint]") {
  PublishedModel published;
  uint64_t heard = 0;
  const TensorflowPlan plan = published.Plan();
  REQUIRE(published.Export("one").ok());
  const auto exported = ExportTensorflow(
      published.Open(), plan, published.home, "many", [&](uint64_t bytes) { heard += bytes; }, /*shard_bytes=*/32);
  REQUIRE(exported.status() == absl::OkStatus());
  CHECK(heard == plan.TotalBytes());
  CHECK(BundleReader::Open(published.home, "many")->index().shards > 3);
  CHECK(ReadAll(published.home, "many") == ReadAll(published.home, "one"));
}

TEST_CASE("tensorflow export: the folder's newest is named, unless another program keeps that file", "[checkpoint]") {
  PublishedModel published;
  const auto newest = [&] {
    return ParseCheckpointState(*ReadWholeFile(published.home, "checkpoint", 1 << 20)).value();
  };
  CHECK(published.Export("a")->is_newest);
  CHECK(newest() == "a");
  CHECK(published.Export("b")->is_newest);
  CHECK(newest() == "b");
  REQUIRE(ReplaceFile(published.home, "scratch", "checkpoint", "model_checkpoint_path: \"x\"\n", Access::kShared).ok());
  CHECK_FALSE(published.Export("c")->is_newest);
  CHECK(newest() == "x");
}

TEST_CASE("tensorflow export: a damaged checkpoint and one of another metagraph leave nothing", "[checkpoint]") {
  PublishedModel published;
  MetaGraph other = published.metagraph;
  other.forward.variables[1].shape = {4};
  const auto of_other =
      ExportTensorflow(published.Open(), PlanTensorflow(other, kStep, {}).value(), published.home, "ck");
  CHECK(of_other.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(of_other.status().message()), Contains("features.0.bias"));

  const std::string path = JoinPath(published.Open().path(), "model-00001-of-00002.safetensors");
  std::string bytes = *ReadWholeFile(published.job, path, 1 << 20);
  bytes.back() ^= 1;
  REQUIRE(ReplaceFile(published.job, "scratch", path, bytes, Access::kShared).ok());
  CHECK(absl::IsDataLoss(published.Export("ck").status()));
  CHECK(published.home.List("")->empty());
}

TEST_CASE("tensorflow export: a second name that other names begin with is refused", "[checkpoint]") {
  MetaGraph metagraph = TensorflowTestGraph();
  metagraph.aliases.push_back({"features", "places"});
  const auto plan = PlanTensorflow(metagraph, kStep, {});
  CHECK(absl::IsInvalidArgument(plan.status()));
  CHECK_THAT(std::string(plan.status().message()), Contains("'features'"));
}

}  // namespace
}  // namespace lockstep::chief
