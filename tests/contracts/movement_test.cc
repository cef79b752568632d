// Ops that move elements and pick them by index: every element type moves as F32 does, and an index outside of a tensor
// has the result that gather.h and scatter.h state, on every device.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <numeric>

#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/run_nodes.h"

namespace lockstep {
namespace {

void MustOk(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

// The bits of 0, 1, 2 or 3 in an element type, by which the test writes and reads all of them alike.
uint64_t Bits(DType dtype, int number) {
  const float f = static_cast<float>(number);
  const double d = number;
  uint64_t bits = 0;
  if (dtype == DType::kF32) {
    std::memcpy(&bits, &f, sizeof(f));
  } else if (dtype == DType::kF64) {
    std::memcpy(&bits, &d, sizeof(d));
  } else {
    bits = static_cast<uint64_t>(dtype == DType::kBool ? number % 2 : number);
  }
  return bits;
}

// Numbers 0 to 3 in the inputs that are F32 in the case, as `dtype`; indices 0 to 2 in the others.
NamedTensors InputsOf(const DeviceCase& c, DType dtype) {
  NamedTensors values;
  for (const GraphInput& input : c.graph.inputs) {
    const bool index = input.dtype != DType::kF32;
    Tensor tensor = Tensor::Zeros(index ? input.dtype : dtype, input.shape);
    const int size = DTypeSize(tensor.dtype());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      const int number = static_cast<int>((i * 7 + i / 3) % (index ? 3 : 4));
      const uint64_t bits = Bits(tensor.dtype(), number);
      std::memcpy(tensor.data() + i * size, &bits, static_cast<size_t>(size));
    }
    values.emplace(input.name, std::move(tensor));
  }
  return values;
}

std::vector<uint64_t> Elements(const Tensor& tensor) {
  std::vector<uint64_t> elements(static_cast<size_t>(tensor.num_elements()), 0);
  const int size = DTypeSize(tensor.dtype());
  for (size_t i = 0; i < elements.size(); ++i) {
    std::memcpy(&elements[i], tensor.data() + static_cast<int64_t>(i) * size, static_cast<size_t>(size));
  }
  return elements;
}

TEST_CASE("movement: elements of every type move as those of F32 do", "[device]") {
  const auto device =
      MakeTestedDevice(GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost));
  for (const OpType op : {OpType::kFlatten,      OpType::kReshape,         OpType::kExpand,
                          OpType::kSqueeze,      OpType::kUnsqueeze,       OpType::kTranspose,
                          OpType::kDepthToSpace, OpType::kSpaceToDepth,    OpType::kConcat,
                          OpType::kSplit,        OpType::kSlice,           OpType::kTile,
                          OpType::kPad,          OpType::kGather,          OpType::kGatherElements,
                          OpType::kGatherND,     OpType::kScatterElements, OpType::kScatterND,
                          OpType::kTrilu,        OpType::kReverseSequence, OpType::kOneHot}) {
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      Dice dice(seed);
      DeviceCase c = RandomCase(op, dice);
      OpAttributes& attributes = c.graph.nodes[0].attributes;
      if (auto* pad = std::get_if<PadAttributes>(&attributes)) pad->value = 1.0;
      if (auto* scatter = std::get_if<ScatterAttributes>(&attributes)) scatter->reduction = ScatterReduction::kNone;
      if (auto* scatter = std::get_if<ScatterNdAttributes>(&attributes)) scatter->reduction = ScatterReduction::kNone;
      NamedTensors expected = InputsOf(c, DType::kF32);
      RunNodes(*device, c.graph, &expected);
      for (const DType dtype : {DType::kBool, DType::kU8, DType::kI8, DType::kF8E5M2, DType::kI16, DType::kBF16,
                                DType::kI32, DType::kU32, DType::kF64, DType::kI64, DType::kU64}) {
        // A constant of a small floating type can only be 0.
        if (op == OpType::kPad && IsFloating(dtype) && dtype != DType::kF64) continue;
        INFO(OpName(op) << " of " << DTypeName(dtype) << ", seed " << seed);
        Graph graph = c.graph;
        for (GraphInput& input : graph.inputs) input.dtype = input.dtype == DType::kF32 ? dtype : input.dtype;
        MustOk(InferShapes(&graph));
        NamedTensors got = InputsOf(c, dtype);
        RunNodes(*device, graph, &got);
        for (const std::string& output : graph.outputs) {
          CHECK(got.at(output).dtype() == dtype);
          std::vector<uint64_t> wanted;
          for (const float number : expected.at(output).elements<float>()) {
            wanted.push_back(Bits(dtype, static_cast<int>(number)));
          }
          CHECK(Elements(got.at(output)) == wanted);
        }
      }
    }
  }
}

// One node over `inputs`; its first output.
Tensor RunNode(TestedDevice which, OpType op, OpAttributes attributes, std::vector<Tensor> inputs) {
  const auto device = MakeTestedDevice(which);
  NamedTensors results = RunOneNode(*device, op, std::move(attributes), std::move(inputs));
  return std::move(results.at("y0"));
}

// Narrow dimensions, of which kernels move pairs and the like by loops of their own.
TEST_CASE("movement: every transposition keeps every element, of every size", "[device]") {
  const auto reference = MakeTestedDevice(TestedDevice::kReference);
  const auto cpu = MakeTestedDevice(TestedDevice::kCpu);
  const auto cuda = MakeTestedDevice(TestedDevice::kCudaOnHost);
  for (const Shape& shape : {Shape{2, 2, 2, 2, 2}, Shape{3, 2, 2, 2, 2}, Shape{2, 3, 2, 4}, Shape{5, 2, 9}}) {
    for (const DType dtype : {DType::kU8, DType::kBF16, DType::kF32, DType::kI64}) {
      Tensor input = Tensor::Zeros(dtype, shape);
      const int size = DTypeSize(dtype);
      for (int64_t i = 0; i < input.num_elements(); ++i) std::memcpy(input.data() + i * size, &i, 1);
      TransposeAttributes attributes;
      attributes.perm.resize(shape.size());
      std::iota(attributes.perm.begin(), attributes.perm.end(), 0);
      do {
        const auto run = [&](device::Device& device) {
          std::vector<Tensor> inputs;
          inputs.push_back(input.Clone());
          return Elements(RunOneNode(device, OpType::kTranspose, attributes, std::move(inputs)).at("y0"));
        };
        CAPTURE(DTypeName(dtype), shape, attributes.perm);
        const std::vector<uint64_t> expected = run(*reference);
        REQUIRE(run(*cpu) == expected);
        REQUIRE(run(*cuda) == expected);
      } while (std::next_permutation(attributes.perm.begin(), attributes.perm.end()));
    }
  }
}

template <typename... T>
std::vector<Tensor> ListOf(T&&... tensors) {
  std::vector<Tensor> all;
  (all.push_back(std::forward<T>(tensors)), ...);
  return all;
}

// -99 stands for NaN.
std::vector<float> NumbersOf(const Tensor& tensor) {
  std::vector<float> numbers;
  for (const float number : tensor.elements<float>()) numbers.push_back(std::isnan(number) ? -99.0f : number);
  return numbers;
}

TEST_CASE("movement: an index outside picks NaN and makes the gradient NaN", "[device]") {
  const TestedDevice kind = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  const auto x = [] { return Tensor::Of<float>({3, 2}, {1, 2, 3, 4, 5, 6}); };
  const auto rows = [] { return Tensor::Of<int64_t>({4}, {2, 3, -3, -4}); };

  CHECK(NumbersOf(RunNode(kind, OpType::kGather, GatherAttributes{0}, ListOf(x(), rows()))) ==
        std::vector<float>{5, 6, -99, -99, 1, 2, -99, -99});
  CHECK(NumbersOf(RunNode(kind, OpType::kGatherGrad, GatherAttributes{0, {3, 2}},
                          ListOf(Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}), rows()))) ==
        std::vector<float>(6, -99));
  const auto elements = [] { return Tensor::Of<int32_t>({2, 2}, {2, 5, -9, 0}); };
  CHECK(NumbersOf(RunNode(kind, OpType::kGatherElements, GatherAttributes{0}, ListOf(x(), elements()))) ==
        std::vector<float>{5, -99, -99, 2});
  CHECK(NumbersOf(RunNode(kind, OpType::kGatherElementsGrad, GatherAttributes{0, {3, 2}},
                          ListOf(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}), elements()))) == std::vector<float>(6, -99));
  const auto coordinates = [] { return Tensor::Of<int64_t>({3, 2}, {1, 1, 3, 0, 0, -3}); };
  CHECK(NumbersOf(RunNode(kind, OpType::kGatherND, GatherNdAttributes{}, ListOf(x(), coordinates()))) ==
        std::vector<float>{4, -99, -99});
  CHECK(NumbersOf(RunNode(kind, OpType::kGatherNDGrad, GatherNdAttributes{0, {3, 2}},
                          ListOf(Tensor::Of<float>({3}, {1, 2, 3}), coordinates()))) == std::vector<float>(6, -99));
  CHECK(NumbersOf(RunNode(kind, OpType::kGatherGrad, GatherAttributes{0, {3, 2}},
                          ListOf(Tensor::Of<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8}),
                                 Tensor::Of<int32_t>({4}, {2, -1, 0, 2})))) == std::vector<float>{5, 6, 0, 0, 11, 14});
  // Integers have no NaN.
  const Tensor integers = RunNode(kind, OpType::kGather, GatherAttributes{0},
                                  ListOf(Tensor::Of<int64_t>({2}, {7, 8}), Tensor::Of<int64_t>({2}, {1, 2})));
  CHECK(std::vector<int64_t>(integers.elements<int64_t>().begin(), integers.elements<int64_t>().end()) ==
        std::vector<int64_t>{8, 0});
}

TEST_CASE("movement: an index outside makes all that is scattered NaN", "[device]") {
  const TestedDevice kind = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  for (const ScatterReduction reduction : {ScatterReduction::kNone, ScatterReduction::kAdd, ScatterReduction::kMax}) {
    const auto x = [] { return Tensor::Of<float>({3}, {1, 2, 3}); };
    const auto updates = [] { return Tensor::Of<float>({2}, {8, 9}); };
    for (const int64_t outside : {3, -4}) {
      CHECK(NumbersOf(RunNode(kind, OpType::kScatterElements, ScatterAttributes{0, reduction},
                              ListOf(x(), Tensor::Of<int64_t>({2}, {outside, 1}), updates()))) ==
            std::vector<float>{-99, -99, -99});
      CHECK(NumbersOf(RunNode(kind, OpType::kScatterND, ScatterNdAttributes{reduction},
                              ListOf(x(), Tensor::Of<int64_t>({2, 1}, {outside, 1}), updates()))) ==
            std::vector<float>{-99, -99, -99});
    }
    const Tensor integers = RunNode(
        kind, OpType::kScatterElements, ScatterAttributes{0, reduction},
        ListOf(Tensor::Of<int32_t>({2}, {1, 2}), Tensor::Of<int64_t>({2}, {2, 1}), Tensor::Of<int32_t>({2}, {8, 9})));
    CHECK(integers.elements<int32_t>()[0] == 1);
    CHECK(integers.elements<int32_t>()[1] == (reduction == ScatterReduction::kAdd ? 11 : 9));
  }
}

TEST_CASE("movement: comparisons know where NaN and equal elements stand", "[device]") {
  const TestedDevice which = GENERATE(TestedDevice::kReference, TestedDevice::kCpu, TestedDevice::kCudaOnHost);
  const float nan = std::nanf("");
  const auto x = [nan] { return Tensor::Of<float>({5}, {2, nan, 3, nan, 3}); };
  const auto arg = [&](OpType op, bool last) {
    return RunNode(which, op, ArgAttributes{0, false, last}, ListOf(x())).elements<int64_t>()[0];
  };
  CHECK(arg(OpType::kArgMax, false) == 1);
  CHECK(arg(OpType::kArgMax, true) == 3);
  CHECK(arg(OpType::kArgMin, false) == 1);
  const auto top = [&](bool largest) {
    Graph graph;
    NamedTensors values;
    values.emplace("x", x());
    graph.values["x"] = {DType::kF32, {5}};
    MustOk(AppendNode(&graph, {"n", OpType::kTopK, {"x"}, {"v", "i"}, TopKAttributes{5, 0, largest}}));
    RunNodes(*MakeTestedDevice(which), graph, &values);
    const absl::Span<const int64_t> indices = values.at("i").elements<int64_t>();
    return std::vector<int64_t>(indices.begin(), indices.end());
  };
  CHECK(top(true) == std::vector<int64_t>{1, 3, 2, 4, 0});
  CHECK(top(false) == std::vector<int64_t>{0, 2, 4, 1, 3});
}

}  // namespace
}  // namespace lockstep
