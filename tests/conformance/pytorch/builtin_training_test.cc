// The built-in architectures train as PyTorch trains them: the loss of every step and the weights at the end, from
// files that builtin_models.py makes out of the same random numbers. One logical shard and one pass of all samples.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/random/random.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/choice/devices.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {
namespace {

constexpr size_t kSteps = 6;
constexpr int64_t kBatch = 8;
constexpr uint64_t kSeed = 11;
constexpr int64_t kLength = 16;
constexpr int64_t kVocabulary = 65;

struct Case {
  std::string name;
  ModelSpec model;
  Shape sample;
  double lr = 0.01;
};

std::vector<Case> Cases() {
  const auto transformer = [](const char* name) {
    return ModelSpec{.architecture = name,
                     .layers = 2,
                     .heads = 4,
                     .width = 32,
                     .context = 24,
                     .vocabulary = kVocabulary,
                     .patch = 4};
  };
  const Shape image = {3, 48, 48};
  return {{"resnet18", {.architecture = "resnet18"}, image, 1e-5},
          {"resnet18_small", {.architecture = "resnet18", .small_images = true}, {3, 12, 12}, 1e-5},
          {"resnet34", {.architecture = "resnet34"}, image, 2e-6},
          {"resnet50", {.architecture = "resnet50"}, image, 3e-8},
          {"gpt2", transformer("gpt2"), {kLength}},
          {"bert", transformer("bert"), {kLength}},
          {"vit", transformer("vit"), {3, 16, 16}}};
}

struct Trained {
  std::vector<double> losses;
  std::map<std::string, std::pair<double, double>> tensors;  // sum and norm
};

Trained ReadGolden(const std::string& name) {
  Trained golden;
  std::ifstream file("tests/conformance/pytorch/builtin/" + name + ".losses.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    if (golden.losses.size() < kSteps) {
      words >> golden.losses.emplace_back();
    } else {
      std::string key;
      words >> key;
      words >> golden.tensors[key].first >> golden.tensors[key].second;
    }
  }
  return golden;
}

// One batch of random numbers: images and classes, or tokens and what they score.
class RandomBatch final : public DataSource {
 public:
  RandomBatch(const Shape& sample, DType dtype, const Shape& label, uint32_t classes)
      : fields_{{"inputs", dtype, sample}, {"labels", DType::kI64, label}}, classes_(classes) {}
  int64_t num_samples() const override { return kBatch; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    const RandomStream stream = RandomStream::For(kSeed, StreamOfName(fields_[field].name));
    const int64_t size = NumElements(fields_[field].shape);
    int64_t at = 0;
    for (const int64_t index : indices) {
      for (int64_t i = 0; i < size; ++i, ++at) {
        const uint32_t number = stream.At(index * size + i);
        if (fields_[field].dtype == DType::kF32) {
          reinterpret_cast<float*>(out.data())[at] = SymmetricUnit(number);
        } else {
          reinterpret_cast<int64_t*>(out.data())[at] = number % (field == 0 ? kVocabulary : classes_);
        }
      }
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  const std::vector<TensorSpec> fields_;
  const uint32_t classes_;
  const std::string hash_ = "made up";
};

MetaGraph MakeMetaGraph(const Case& model, const RandomBatch& data) {
  MetaGraphRequest request;
  request.model = model.model;
  for (const TensorSpec& field : data.fields()) {
    Shape shape = {kBatchDim};
    shape.insert(shape.end(), field.shape.begin(), field.shape.end());
    const InputRole role = field.name == "labels" ? InputRole::kLabel : InputRole::kFeature;
    request.inputs.push_back({field.name, field.name, role, field.dtype, shape, {}});
  }
  request.update.optimizer = {.kind = OptimizerKind::kSgd, .momentum = 0.9};
  request.update.schedule = {.kind = ScheduleKind::kConstant, .lr = model.lr};
  request.pass_batch = kBatch;
  const auto metagraph = BuildMetaGraph(request);
  INFO(metagraph.status().ToString());
  REQUIRE(metagraph.ok());
  return *metagraph;
}

// Weights that are large enough for every part to matter, as builtin_models.py fills them.
void FillParameters(const MetaGraph& metagraph, const StateLayout& layout, std::vector<Tensor>* state) {
  for (const Variable& variable : metagraph.forward.variables) {
    if (variable.kind != VariableKind::kParameter) continue;
    const RandomStream stream = RandomStream::For(kSeed, StreamOfName(variable.name));
    const absl::Span<float> elements = (*state)[layout.Find(variable.name)].elements<float>();
    const Shape& shape = variable.shape;
    const bool vector = shape.size() == 1;
    const auto fan_in = static_cast<double>(NumElements(shape) / shape[0]);
    const float bound = vector ? 0.25f : static_cast<float>(std::sqrt(3.0 / fan_in));
    const bool scale = vector && variable.name.ends_with("weight");
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i] = SymmetricUnit(stream.At(i)) * bound + (scale ? 1.0f : 0.0f);
    }
  }
  for (size_t i = 0; i < layout.tensors.size(); ++i) {
    const StateTensor& tensor = layout.tensors[i];
    if (tensor.kind == StateKind::kAlias) (*state)[i] = (*state)[layout.Find(tensor.variable)].Clone();
  }
}

Trained Train(const Case& model, device::DeviceKind kind, size_t steps) {
  const bool tokens = model.sample.size() == 1;
  const bool every_position = model.model.architecture == "gpt2";
  const RandomBatch data(model.sample, tokens ? DType::kI64 : DType::kF32, every_position ? model.sample : Shape{},
                         every_position ? kVocabulary : 10);
  const MetaGraph metagraph = MakeMetaGraph(model, data);
  const auto device = device::MakeDevice(kind, {}).value();
  const auto state = ReplicaState::Create(MakeStateLayout(metagraph), *device).value();
  std::vector<Tensor> initial = MakeInitialState(metagraph, kSeed).value();
  FillParameters(metagraph, state->layout(), &initial);
  REQUIRE(state->host().Load(initial).ok());
  REQUIRE(state->Store().ok());
  std::map<std::string, std::byte*> variables;
  for (const Variable& variable : metagraph.forward.variables) {
    variables[variable.name] = state->address(state->layout().Find(variable.name));
  }
  StepConfig config{.metagraph = metagraph,
                    .training = MakeTrainingGraph(metagraph).value(),
                    .seed = kSeed,
                    .global_batch = kBatch,
                    .logical_shards = 1,
                    .device = device.get()};
  const auto plan = Plan::Make(device.get(), config.training.graph, variables, {}).value();
  const auto runner =
      StepRunner::Make(std::move(config), state.get(), {.training = plan.get()}, &data, nullptr).value();
  auto communicators = MakeLoopback({1, 1}, 1);
  Trained trained;
  for (size_t step = 1; step <= steps; ++step) {
    const auto result = runner->RunStep(*communicators[0], static_cast<int64_t>(step), {});
    INFO(result.status().ToString());
    REQUIRE(result.ok());
    trained.losses.push_back(result->record.loss);
  }
  for (const Variable& variable : metagraph.forward.variables) {
    const auto* elements = state->floats(state->layout().Find(variable.name));
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < NumElements(variable.shape); ++i) {
      sum += elements[i];
      squares += static_cast<double>(elements[i]) * elements[i];
    }
    trained.tensors[variable.name] = {sum, std::sqrt(squares)};
  }
  return trained;
}

TEST_CASE("builtin: every architecture trains as the same module in PyTorch", "[builtin][pytorch]") {
  const Case model = GENERATE(from_range(Cases()));
  CAPTURE(model.name);
  const Trained golden = ReadGolden(model.name);
  REQUIRE(golden.losses.size() == kSteps);

  const Trained trained = Train(model, device::DeviceKind::kCpu, kSteps);

  for (size_t step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(trained.losses[step] == Approx(golden.losses[step]).epsilon(1e-4));
  }
  CHECK(trained.tensors.size() == golden.tensors.size());  // every name of the state dict, and no other
  for (const auto& [key, expected] : golden.tensors) {
    CAPTURE(key);
    REQUIRE(trained.tensors.count(key) == 1);
    CHECK(trained.tensors.at(key).first == Approx(expected.first).margin(1e-3 * (1 + expected.second)));
    CHECK(trained.tensors.at(key).second == Approx(expected.second).epsilon(1e-3));
  }
}

TEST_CASE("builtin: the reference device gives the same losses", "[builtin][pytorch]") {
  const Case model = GENERATE(from_range(Cases()));
  if (model.sample.back() == 48) return;  // too much for the slow device, and the same ops as resnet18_small
  CAPTURE(model.name);
  const Trained golden = ReadGolden(model.name);

  const Trained trained = Train(model, device::DeviceKind::kReference, 2);

  for (size_t step = 0; step < trained.losses.size(); ++step) {
    CHECK(trained.losses[step] == Approx(golden.losses[step]).epsilon(1e-4));
  }
}

}  // namespace
}  // namespace lockstep::worker
