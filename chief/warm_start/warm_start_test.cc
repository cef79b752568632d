#include "chief/warm_start/warm_start.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "common/tensor/bf16.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// A fresh folder.
struct Folder {
  explicit Folder(const std::string& name) : path(absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name, ".", getpid())) {
    std::filesystem::remove_all(path);
    storage = LocalStorage::Create(path).value();
  }
  // A file of safetensors; the bytes are those of `values`.
  void Write(const std::string& name, std::vector<std::pair<TensorSpec, std::string>> tensors) {
    std::vector<TensorSpec> specs;
    for (const auto& [spec, bytes] : tensors) specs.push_back(spec);
    std::vector<TensorSpec> ordered;
    std::string data;
    for (const int i : SafetensorsOrder(specs)) {
      ordered.push_back(specs[static_cast<size_t>(i)]);
      data += tensors[static_cast<size_t>(i)].second;
    }
    const std::string header = EncodeSafetensorsHeader(ordered).value();
    REQUIRE(WriteNewFile(*storage, name, header + data, Access::kShared).ok());
  }

  std::string path;
  std::unique_ptr<LocalStorage> storage;
};

template <typename T>
std::string Bytes(std::vector<T> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::vector<float> FloatsOf(const Tensor& tensor) {
  return {tensor.elements<float>().begin(), tensor.elements<float>().end()};
}

StateTensor Of(const std::string& name, StateGroup group, StateKind kind, const std::string& variable,
               DType dtype = DType::kF32, Shape shape = {2}) {
  return {{name, dtype, std::move(shape)}, group, kind, variable};
}

// A weight with a second name, its slot, its averages, and what counts steps.
struct SmallModel {
  SmallModel() {
    layout.tensors = {Of("w", StateGroup::kModel, StateKind::kParameter, "w"),
                      Of("b", StateGroup::kModel, StateKind::kParameter, "b"),
                      Of("again", StateGroup::kModel, StateKind::kAlias, "w"),
                      Of("seen", StateGroup::kModel, StateKind::kAlias, "lockstep.step", DType::kI64, {}),
                      Of("exp_avg.w", StateGroup::kOptimizer, StateKind::kSlot, "w"),
                      Of("lockstep.ema.w", StateGroup::kEma, StateKind::kAverage, "w"),
                      Of("lockstep.ema.again", StateGroup::kEma, StateKind::kAlias, "lockstep.ema.w")};
    for (const StateTensor& tensor : layout.tensors)
      state.push_back(Tensor::Zeros(tensor.spec.dtype, tensor.spec.shape));
  }
  absl::StatusOr<WarmStartReport> Begin(const job::WarmStart& from) { return BeginFrom(from, layout, state); }
  std::vector<float> operator[](const std::string& name) {
    return FloatsOf(state[static_cast<size_t>(layout.Find(name))]);
  }

  StateLayout layout;
  std::vector<Tensor> state;
};

job::WarmStart From(const std::string& path) {
  job::WarmStart from;
  from.set_path(path);
  from.set_weights(job::WarmStart::WEIGHTS_MODEL);
  return from;
}

const TensorSpec kW{"w", DType::kF32, {2}}, kB{"b", DType::kF32, {2}}, kAgain{"again", DType::kF32, {2}},
    kSeen{"seen", DType::kI64, {}};

TEST_CASE("warm start: weights come with their second names and averages, and nothing else does", "[warm_start]") {
  Folder folder("file");
  folder.Write("x.safetensors",
               {{kAgain, Bytes<float>({1, 2})}, {kB, Bytes<float>({3, 4})}, {kSeen, Bytes<int64_t>({77})}});
  SmallModel model;

  const auto report = model.Begin(From(folder.path + "/x.safetensors"));

  REQUIRE(report.status() == absl::OkStatus());
  CHECK(model["w"] == std::vector<float>{1, 2});
  CHECK(model["again"] == std::vector<float>{1, 2});
  CHECK(model["lockstep.ema.w"] == std::vector<float>{1, 2});
  CHECK(model["lockstep.ema.again"] == std::vector<float>{1, 2});
  CHECK(model["b"] == std::vector<float>{3, 4});
  CHECK(model["exp_avg.w"] == std::vector<float>{0, 0});
  CHECK(model.state[3].elements<int64_t>()[0] == 0);
  CHECK_THAT(report->Line(), Contains("x.safetensors"));
  CHECK_THAT(report->Text(), Contains("  again\n"));
  CHECK(CheckWarmStart(From(folder.path + "/x.safetensors"), model.layout)->Text() == report->Text());
}

TEST_CASE("warm start: shorter numbers become the floats that they are", "[warm_start]") {
  Folder folder("short");
  const Bf16 third(1.0f / 3.0f);
  folder.Write("x.safetensors", {{{"w", DType::kF16, {2}}, Bytes<uint16_t>({0x3c00, 0xc100})},
                                 {{"b", DType::kBF16, {2}}, Bytes<uint16_t>({third.bits, 0xc040})}});
  SmallModel model;
  REQUIRE(model.Begin(From(folder.path + "/x.safetensors")).ok());
  CHECK(model["w"] == std::vector<float>{1.0f, -2.5f});
  CHECK(model["b"] == std::vector<float>{third, -3.0f});
}

TEST_CASE("warm start: two names of one tensor must agree", "[warm_start]") {
  Folder folder("names");
  folder.Write("same.safetensors",
               {{kW, Bytes<float>({1, 2})}, {kAgain, Bytes<float>({1, 2})}, {kB, Bytes<float>({3, 4})}});
  folder.Write("other.safetensors",
               {{kW, Bytes<float>({1, 2})}, {kAgain, Bytes<float>({1, 5})}, {kB, Bytes<float>({3, 4})}});
  SmallModel model;
  CHECK(model.Begin(From(folder.path + "/same.safetensors")).ok());
  const absl::Status differ = model.Begin(From(folder.path + "/other.safetensors")).status();
  CHECK(absl::IsInvalidArgument(differ));
  CHECK_THAT(std::string(differ.message()), Contains("again") && Contains("one tensor"));
}

TEST_CASE("warm start: a folder as Hugging Face lays it out, in one file or several", "[warm_start]") {
  Folder one("one"), several("several");
  one.Write("model.safetensors", {{kW, Bytes<float>({1, 2})}, {kB, Bytes<float>({3, 4})}});
  several.Write("model-00001-of-00002.safetensors", {{kW, Bytes<float>({1, 2})}});
  several.Write("model-00002-of-00002.safetensors", {{kB, Bytes<float>({3, 4})}});
  const auto index = [&](const std::string& text) {
    return ReplaceFile(*several.storage, "scratch", "model.safetensors.index.json", text, Access::kShared);
  };
  // Newer writers put more into the metadata than the size.
  REQUIRE(index(R"({"metadata": {"total_size": 16, "total_parameters": 4}, "weight_map": {
      "w": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"}})")
              .ok());
  for (const Folder* folder : {&one, &several}) {
    SmallModel model;
    REQUIRE(model.Begin(From(folder->path)).status() == absl::OkStatus());
    CHECK(model["w"] == std::vector<float>{1, 2});
    CHECK(model["b"] == std::vector<float>{3, 4});
  }

  SmallModel model;
  REQUIRE(index(R"({"weight_map": {"w": "../model.safetensors"}})").ok());
  CHECK(absl::IsDataLoss(model.Begin(From(several.path)).status()));
  REQUIRE(index(R"({"weight_map": {"w": "gone.safetensors"}})").ok());
  const absl::Status gone = model.Begin(From(several.path)).status();
  CHECK(absl::IsNotFound(gone));
  CHECK_THAT(std::string(gone.message()), Contains("gone.safetensors"));
  job::WarmStart with_step = From(one.path);
  with_step.set_step(7);
  CHECK_THAT(std::string(model.Begin(with_step).status().message()), Contains("model.from.step"));
}

// The model of checkpoint_test_util.h.
StateLayout LayoutOfSmallState() {
  StateLayout layout;
  layout.tensors = {
      Of("conv1.weight", StateGroup::kModel, StateKind::kParameter, "conv1.weight", DType::kF32, {6, 1, 5, 5}),
      Of("conv1.bias", StateGroup::kModel, StateKind::kParameter, "conv1.bias", DType::kF32, {6})};
  return layout;
}

std::string BytesOf(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.byte_size())};
}

TEST_CASE("warm start: a checkpoint of a job, its average, or the one of a step", "[warm_start]") {
  Folder folder("job");
  const SmallState first(10), second(20);
  {
    const auto chief = SmallChief::Start(*folder.storage).value();
    REQUIRE(chief->Save(first).ok());
    REQUIRE(chief->Save(second).ok());
  }
  const StateLayout layout = LayoutOfSmallState();
  const auto begin = [&](job::WarmStart from) -> absl::StatusOr<std::string> {
    from.add_allow_unused("none");
    std::vector<Tensor> state;
    for (const StateTensor& tensor : layout.tensors) state.push_back(Tensor::Zeros(DType::kF32, tensor.spec.shape));
    LS_RETURN_IF_ERROR(BeginFrom(from, layout, state).status());
    return BytesOf(state[0]) + BytesOf(state[1]);
  };
  const auto model_of = [](const SmallState& state) { return state.bytes[0] + state.bytes[1]; };

  job::WarmStart from = From(folder.path);
  CHECK(begin(from).value() == model_of(second));
  from.set_step(10);
  CHECK(begin(from).value() == model_of(first));
  from.set_weights(job::WarmStart::WEIGHTS_EMA);
  CHECK(begin(from).value() == first.bytes[4] + first.bytes[5]);
  from.set_step(30);
  CHECK(absl::IsNotFound(begin(from).status()));
  CHECK(begin(From(folder.path + "/checkpoints/step-000000010")).value() == model_of(first));
  CHECK(begin(From(folder.path + "/checkpoints/step-000000010/")).value() == model_of(first));

  const std::string file = folder.path + "/checkpoints/step-000000020/model-00001-of-00002.safetensors";
  std::string bytes = *ReadWholeFile(*folder.storage, file.substr(folder.path.size() + 1), 1 << 20);
  bytes.back() ^= 1;
  REQUIRE(ReplaceFile(*folder.storage, "scratch", file.substr(folder.path.size() + 1), bytes, Access::kShared).ok());
  const absl::Status damaged = begin(From(folder.path)).status();
  CHECK(absl::IsDataLoss(damaged));
  CHECK(WarmStartExitCode(damaged) == kExitBadData);
}

TEST_CASE("warm start: what is no source of weights is refused with what would be one", "[warm_start]") {
  Folder folder("other");
  REQUIRE(WriteNewFile(*folder.storage, "model.bin", "pickle", Access::kShared).ok());
  SmallModel model;
  const auto message = [&](const std::string& path) {
    const absl::Status refused = model.Begin(From(path)).status();
    CHECK(WarmStartExitCode(refused) == kExitBadJob);
    return std::string(refused.message());
  };
  CHECK_THAT(message(folder.path + "/model.bin"), Contains("is no .safetensors file") && Contains("save_file"));
  CHECK_THAT(message(folder.path), Contains("holds no trained weights") && Contains("save_file"));
  CHECK_THAT(message(folder.path + "/nothing"), Contains("model.from: ") && Contains("/nothing"));
  CHECK_THAT(message(folder.path + "/nothing.safetensors"), Contains("nothing.safetensors"));
}

}  // namespace
}  // namespace lockstep::chief
