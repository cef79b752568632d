// What BF16 means, on every device and for every op: the bits of the device's own F32 kernel between a widening and a
// rounding that are done here.
#include "common/tensor/bf16.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "common/graph/ops/schema.h"
#include "common/graph/ops/wide_operands.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

// --- numbers ---

// The nearest BF16 by comparing the two neighbours, in double.
float Nearest(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const double below = std::bit_cast<float>(bits & 0xffff0000u);
  const double step = std::ldexp(1.0, std::max(std::ilogb(value), -126) - 7);
  const double above = below + std::copysign(step, value);
  const double to_below = std::fabs(value - below), to_above = std::fabs(above - value);
  const bool even = (bits >> 16 & 1) == 0;
  return static_cast<float>(to_below < to_above || (to_below == to_above && even) ? below : above);
}

TEST_CASE("bf16: a float becomes its nearest, and the even one of two", "[bf16]") {
  const RandomStream stream = RandomStream::For(1, 1);
  for (uint64_t i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(stream.At(i) & (i % 4 == 0 ? 0xffff8000u : ~0u));
    if (!(std::fabs(value) < 3e38f)) continue;
    if (value == 0) continue;
    INFO(value);
    REQUIRE(static_cast<float>(Bf16(value)) == Nearest(value));
  }
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(static_cast<float>(Bf16(infinity)) == infinity);
  CHECK(static_cast<float>(Bf16(-std::numeric_limits<float>::max())) == -infinity);
  CHECK(std::isnan(static_cast<float>(Bf16(std::bit_cast<float>(0x7f800001u)))));
  CHECK(std::signbit(static_cast<float>(Bf16(-0.0f))));
}

// --- ops ---

Tensor Rounded(const Tensor& wide) {
  Tensor rounded = Tensor::Zeros(DType::kBF16, wide.shape());
  auto* to = reinterpret_cast<Bf16*>(rounded.data());
  const auto from = wide.elements<float>();
  for (size_t i = 0; i < from.size(); ++i) to[i] = Bf16(from[i]);
  return rounded;
}

Tensor Widened(const Tensor& tensor) {
  if (tensor.dtype() != DType::kBF16) return tensor.Clone();
  Tensor wide = Tensor::Zeros(DType::kF32, tensor.shape());
  const auto* from = reinterpret_cast<const Bf16*>(tensor.data());
  for (size_t i = 0; i < wide.elements<float>().size(); ++i) wide.elements<float>()[i] = from[i];
  return wide;
}

// Runs the node over `values`, which it reads and to which it adds.
void RunOn(device::Device& device, const Node& node, NamedTensors* values) {
  Graph graph;
  for (const std::string& input : node.inputs) {
    if (!input.empty()) graph.values[input] = {values->at(input).dtype(), values->at(input).shape()};
  }
  MustOk(AppendNode(&graph, node));
  RunNodes(device, graph, values);
}

// NaNs are equal: which one a rounding gives is nobody's business.
void CheckEqual(const Tensor& expected, const Tensor& got) {
  REQUIRE(expected.dtype() == got.dtype());
  REQUIRE(expected.shape() == got.shape());
  if (BitEqual(expected, got)) return;
  REQUIRE(IsFloating(got.dtype()));
  const Tensor a = Widened(expected), b = Widened(got);
  for (size_t i = 0; i < a.elements<float>().size(); ++i) {
    const float x = a.elements<float>()[i], y = b.elements<float>()[i];
    CAPTURE(i, x, y);
    REQUIRE((std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y) || (std::isnan(x) && std::isnan(y))));
  }
}

// Runs a case's nodes with BF16 for all that may be BF16, each against its F32 form.
void CheckCase(device::Device& device, const DeviceCase& c, uint64_t seed) {
  NamedTensors values = RandomSources(c.graph, seed);

  for (const Node& node : c.graph.nodes) {
    if (node.op == OpType::kCast) {
      RunOn(device, node, &values);
      continue;
    }
    INFO(OpName(node.op));
    const WideOperands wide = WideOperandsOf(node.op);
    NamedTensors narrow, widened;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i].empty()) continue;
      const Tensor& value = values.at(node.inputs[i]);
      const bool rounds = value.dtype() == DType::kF32 && !wide.input(i);
      Tensor operand = rounds ? Rounded(value) : value.Clone();
      if (wide.input(i)) operand = Widened(operand);
      widened.insert_or_assign(node.inputs[i], Widened(operand));
      narrow.insert_or_assign(node.inputs[i], std::move(operand));
    }
    RunOn(device, node, &widened);
    RunOn(device, node, &narrow);
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i].empty()) continue;
      INFO("output " << i);
      const Tensor& expected = widened.at(node.outputs[i]);
      const Tensor& got = narrow.at(node.outputs[i]);
      const bool rounds = got.dtype() == DType::kBF16;
      CHECK(rounds == (expected.dtype() == DType::kF32 && !wide.output(i) &&
                       std::any_of(narrow.begin(), narrow.end(),
                                   [](const auto& entry) { return entry.second.dtype() == DType::kBF16; })));
      CheckEqual(rounds ? Rounded(expected) : expected.Clone(), got);
      values.insert_or_assign(node.outputs[i], got.Clone());
    }
  }
}

TEST_CASE("bf16: an op gives what its F32 form gives between widening and rounding, on every device", "[bf16]") {
  const TestedDevice which = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  const auto device = MakeTestedDevice(which);
  CAPTURE(device->info().kind);
  for (const OpType op : AllOps()) {
    for (const uint64_t seed : Seeds()) {
      INFO("LOCKSTEP_TEST_SEED=" << seed << " " << OpName(op));
      Dice dice(seed * 100 + static_cast<uint64_t>(op));
      CheckCase(*device, RandomCase(op, dice), seed);
    }
  }
}

TEST_CASE("bf16: a result may lie where an operand lay that was widened, and nowhere else", "[bf16]") {
  const auto device = MakeTestedDevice(GENERATE(TestedDevice::kReference, TestedDevice::kCpu));
  const Shape shape = {3, 40};
  const Node node{"softmax", OpType::kSoftmaxGrad, {"dy", "y"}, {"dx"}, SoftmaxAttributes{.axis = 1}};
  const device::Operand operand{.dtype = DType::kBF16, .shape = shape};
  device::KernelRequest request{.node = &node, .inputs = {operand, operand}, .outputs = {operand}};
  const auto kernel = Must(device->MakeKernel(request));
  const auto stream = Must(device->NewStream());
  const auto workspace = Must(device->Allocate(kernel->workspace_bytes()));
  NamedTensors values;
  for (const char* name : {"dy", "y", "dx"}) {
    Tensor wide = Tensor::Zeros(DType::kF32, shape);
    const RandomStream numbers = RandomStream::For(1, StreamOfName(name));
    for (size_t i = 0; i < 120; ++i) wide.elements<float>()[i] = SymmetricUnit(numbers.At(i));
    values.insert_or_assign(name, Rounded(wide));
  }
  const auto run = [&](Tensor& dx) {
    MustOk(kernel->Bind({{values.at("dy").data(), values.at("y").data()}, {dx.data()}, workspace->address()}));
    MustOk(kernel->Launch(*stream));
    MustOk(stream->Synchronize());
  };

  run(values.at("dx"));
  run(values.at("y"));

  CHECK(kernel->CanShare(0, 0));
  CHECK(kernel->CanShare(1, 0));
  CHECK(BitEqual(values.at("dx"), values.at("y")));
  const Node norm{"norm", OpType::kRmsNormalization, {"x", "scale"}, {"y"}, LayerNormAttributes{.axis = -1}};
  const device::Operand scale{.dtype = DType::kF32, .shape = {40}};
  request = {.node = &norm, .inputs = {operand, scale}, .outputs = {operand}};
  const auto wide_scale = Must(device->MakeKernel(request));
  CHECK(wide_scale->CanShare(0, 0));
  CHECK_FALSE(wide_scale->CanShare(1, 0));
}

TEST_CASE("bf16: one-hot vectors of indices that are BF16 are where the numbers say", "[bf16]") {
  const TestedDevice which = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  const auto device = MakeTestedDevice(which);
  std::vector<Tensor> inputs;
  inputs.push_back(Rounded(Tensor::Of<float>({3}, {1, 0, -1})));
  inputs.push_back(Rounded(Tensor::Of<float>({2}, {0, 5})));

  const NamedTensors results = RunOneNode(*device, OpType::kOneHot, OneHotAttributes{.depth = 2}, std::move(inputs));

  CHECK(BitEqual(results.at("y0"), Rounded(Tensor::Of<float>({3, 2}, {0, 5, 5, 0, 0, 5}))));
}

}  // namespace
}  // namespace lockstep
