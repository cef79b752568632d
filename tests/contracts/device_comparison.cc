#include "tests/contracts/device_comparison.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "common/graph/graph_editor.h"
#include "common/graph/passes/training_graph.h"

namespace lockstep {

using device::Device;
using worker::Plan;

std::vector<Tensor> RandomInputs(const std::vector<TensorSpec>& specs, uint64_t seed, bool absolute) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : specs) {
    Tensor tensor = Tensor::Zeros(spec.dtype, spec.shape);
    const RandomStream stream = RandomStream::For(seed, StreamOfName(spec.name));
    for (size_t i = 0; i < static_cast<size_t>(tensor.num_elements()); ++i) {
      const uint32_t bits = stream.At(i);
      const float value = SymmetricUnit(bits);
      if (spec.dtype == DType::kI64) {
        tensor.elements<int64_t>()[i] = bits % 3;
      } else if (spec.dtype == DType::kI32) {
        tensor.elements<int32_t>()[i] = static_cast<int32_t>(bits % 3);
      } else if (spec.dtype == DType::kBool) {
        tensor.elements<bool>()[i] = bits % 2 == 1;
      } else if (spec.name == "coarse") {
        tensor.elements<float>()[i] = 0.5f * static_cast<float>(bits % 4);
      } else if (spec.name == kMaskInput) {
        tensor.elements<float>()[i] = static_cast<float>(bits % 2);
      } else {
        tensor.elements<float>()[i] = spec.name == "variance" ? 1.5f + value : absolute ? std::fabs(value) : value;
      }
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

namespace {

template <typename T>
void Append(const std::vector<std::byte>& bytes, std::vector<double>* values) {
  for (size_t i = 0; i < bytes.size() / sizeof(T); ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    values->push_back(static_cast<double>(value));
  }
}

}  // namespace

void MustOk(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

worker::KernelChoices ChoicesOf(Device& device, const Graph& graph) {
  return Must(Plan::Draft(&device, graph, {}))->choices();
}

std::map<std::string, Tensor> RandomSources(const Graph& graph, uint64_t seed) {
  std::vector<TensorSpec> specs;
  for (const GraphInput& input : graph.inputs) specs.push_back({input.name, input.dtype, input.shape});
  std::vector<Tensor> inputs = RandomInputs(specs, seed, false);
  std::map<std::string, Tensor> values;
  for (size_t i = 0; i < specs.size(); ++i) values.emplace(specs[i].name, std::move(inputs[i]));
  for (const Constant& constant : graph.constants) values.emplace(constant.name, constant.value->Clone());
  return values;
}

Values RunCase(Device& device, const Graph& graph, uint64_t seed, bool absolute, const worker::KernelChoices* choices) {
  const auto plan = Must(Plan::Make(&device, graph, {}, {.choices = choices, .poison = true}));
  const std::vector<Tensor> tensors = RandomInputs(plan->inputs(), seed, absolute);
  std::vector<worker::InputBytes> bytes;
  for (const Tensor& tensor : tensors) bytes.push_back(tensor.bytes());
  MustOk(plan->RefreshVariables());
  const worker::PassKey key{.seed = seed, .step = 3, .logical_shard = 2, .pass = 1};
  MustOk(plan->RunPass(bytes, key));
  // The second pass is recorded and replayed: what it computes counts.
  if (plan->stream().can_record()) MustOk(plan->RunPass(bytes, key));
  Values values;
  for (size_t i = 0; i < plan->outputs().size(); ++i) {
    const TensorSpec& output = plan->outputs()[i];
    std::vector<std::byte> bytes(static_cast<size_t>(NumElements(output.shape)) * DTypeSize(output.dtype));
    MustOk(plan->ReadOutput(static_cast<int>(i), absl::MakeSpan(bytes)));
    std::vector<double>* to = &values[output.name];
    if (output.dtype == DType::kF32) Append<float>(bytes, to);
    if (output.dtype == DType::kI32) Append<int32_t>(bytes, to);
    if (output.dtype == DType::kI64) Append<int64_t>(bytes, to);
    if (output.dtype == DType::kBool) Append<uint8_t>(bytes, to);
  }
  return values;
}

namespace {

double LargestFinite(const std::vector<double>& values) {
  double largest = 0;
  for (const double value : values) largest = std::isfinite(value) ? std::max(largest, std::fabs(value)) : largest;
  return largest;
}

// What is not finite has to be the same.
bool IsNear(double value, double reference, double allowed) {
  if (std::isnan(reference)) return std::isnan(value);
  return value == reference || std::fabs(value - reference) <= allowed;
}

}  // namespace

void CompareCase(const DeviceCase& c, const Values& expected, const Values& got, const Values& magnitudes) {
  constexpr double kEps = 0x1p-24;
  for (const auto& [name, reference] : expected) {
    INFO(name);
    const std::vector<double>& values = got.at(name);
    REQUIRE(values.size() == reference.size());
    const double largest =
        std::max({1e-3, LargestFinite(reference), c.scale.empty() ? 0.0 : LargestFinite(expected.at(c.scale))});
    int wrong = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const double scale = c.sums_of_products ? magnitudes.at(name)[i] : largest;
      const double allowed = (static_cast<double>(c.terms) + 8) * kEps * scale + 1e-30;
      if (!IsNear(values[i], reference[i], allowed) && ++wrong == 1) {
        CAPTURE(i, values[i], reference[i], allowed);
        CHECK(IsNear(values[i], reference[i], allowed));
      }
    }
    CHECK(wrong == 0);
  }
}

std::vector<uint64_t> Seeds() {
  if (const char* seed = std::getenv("LOCKSTEP_TEST_SEED"); seed != nullptr) return {std::strtoull(seed, nullptr, 10)};
  std::vector<uint64_t> seeds(15);
  for (size_t i = 0; i < seeds.size(); ++i) seeds[i] = 1000 + i;
  return seeds;
}

Graph Within(const Graph& graph) {
  Graph within = graph;
  within.nodes.clear();
  within.values.clear();
  const auto is_f32 = [&](const std::string& name) { return graph.values.at(name).dtype == DType::kF32; };
  const auto copy = [&](const std::string& from, const std::string& to) {
    within.nodes.push_back({"copy of " + from, OpType::kScale, {from}, {to}, ScaleAttributes{1.0}});
  };
  std::map<std::string, std::string> inner;
  for (const GraphInput& input : graph.inputs) {
    if (!is_f32(input.name)) continue;
    inner[input.name] = "inner " + input.name;
    copy(input.name, inner[input.name]);
  }
  for (Node node : graph.nodes) {
    for (std::string& name : node.inputs) name = inner.count(name) > 0 ? inner[name] : name;
    within.nodes.push_back(std::move(node));
  }
  for (std::string& output : within.outputs) {
    if (!is_f32(output)) continue;
    copy(output, "outer " + output);
    output = "outer " + output;
  }
  MustOk(InferShapes(&within));
  return within;
}

void CheckSharing(Device& device, const DeviceCase& c, uint64_t seed) {
  const Values plain = RunCase(device, c.graph, seed, false);
  const Graph within = Within(c.graph);
  const Values shared = RunCase(device, within, seed, false);
  for (size_t i = 0; i < within.outputs.size(); ++i) {
    INFO(within.outputs[i]);
    const auto& expected = plain.at(c.graph.outputs[i]);
    const auto& got = shared.at(within.outputs[i]);
    REQUIRE(expected.size() == got.size());
    for (size_t j = 0; j < got.size(); ++j) {
      if (std::isnan(expected[j]) && std::isnan(got[j])) continue;
      REQUIRE(expected[j] == got[j]);
    }
  }
}

}  // namespace lockstep
