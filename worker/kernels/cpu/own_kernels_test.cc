#include "worker/kernels/cpu/own_kernels.h"

#include <omp.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "common/graph/ops/schema.h"
#include "common/math/power.h"
#include "common/random/random.h"
#include "worker/device/host/host_memory.h"
#include "worker/kernels/cpu/own_codes.h"
#include "worker/kernels/window.h"

namespace lockstep::device::cpu {
namespace {

struct Case {
  OpType op;
  std::vector<Shape> inputs;
  OpAttributes attributes;
  int outputs = 1;
  bool positive = false;  // the inputs
};

std::vector<Case> Cases() {
  const Shape rows = {37, 83};
  const Shape image = {3, 5, 7, 9};
  const SoftmaxAttributes softmax{.axis = 1};
  const LayerNormAttributes norm{1, 1e-5};
  PoolAttributes pool;
  pool.kernel_shape = {2, 2};
  pool.strides = {2, 2};
  return {{OpType::kExp, {rows}, NoAttributes{}},
          {OpType::kLog, {rows}, NoAttributes{}},
          {OpType::kTanh, {rows}, NoAttributes{}},
          {OpType::kSigmoid, {rows}, NoAttributes{}},
          {OpType::kErf, {rows}, NoAttributes{}},
          {OpType::kGelu, {rows}, GeluAttributes{true}},
          {OpType::kGelu, {rows}, GeluAttributes{false}},
          {OpType::kGeluGrad, {rows, rows}, GeluAttributes{true}},
          {OpType::kGeluGrad, {rows, rows}, GeluAttributes{false}},
          {OpType::kAdd, {rows, {83}}, NoAttributes{}},
          {OpType::kDiv, {rows, rows}, NoAttributes{}},
          {OpType::kSoftmax, {rows}, softmax},
          {OpType::kSoftmaxGrad, {rows, rows}, softmax},
          {OpType::kLogSoftmax, {rows}, softmax},
          {OpType::kLayerNormalization, {rows, {83}, {83}}, norm, 3},
          {OpType::kLayerNormGrad, {rows, rows, {83}, {37, 1}, {37, 1}}, norm, 3},
          {OpType::kReduceSum, {rows}, ReduceAttributes{{1}, false, false}},
          {OpType::kReduceMean, {rows}, ReduceAttributes{{0}, false, false}},
          {OpType::kBatchNormTraining, {image, {5}, {5}}, BatchNormAttributes{}, 4},
          {OpType::kBatchNormGrad, {image, image, {5}, {5}, {5}}, BatchNormAttributes{}, 3},
          {OpType::kMaxPool, {image}, pool},
          {OpType::kTranspose, {rows}, TransposeAttributes{{1, 0}}}};
}

// Reductions along rows and across them, with their gradients, and what else walks along lines.
std::vector<Case> LineCases() {
  const Shape rows = {37, 83};
  std::vector<Case> cases;
  for (const int64_t axis : {0, 1}) {
    const ReduceAttributes reduce{{axis}, false, false};
    const Shape reduced = {rows[1 - axis]};
    for (const OpType op : {OpType::kReduceMax, OpType::kReduceProd, OpType::kReduceL1, OpType::kReduceL2,
                            OpType::kReduceSumSquare, OpType::kReduceLogSumExp}) {
      cases.push_back({op, {rows}, reduce});
    }
    for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kFirstMax, ReduceKind::kProd, ReduceKind::kL1,
                                  ReduceKind::kL2, ReduceKind::kLogSum, ReduceKind::kLogSumExp}) {
      cases.push_back({OpType::kReduceGrad, {reduced, rows, reduced}, ReduceGradAttributes{kind, reduce}});
    }
    cases.push_back({OpType::kTopK, {rows}, TopKAttributes{.k = 5, .axis = axis}, 2});
    cases.push_back(
        {OpType::kTopK, {{3, 500}}, TopKAttributes{.k = 50, .axis = axis == 0 ? -1 : 1, .largest = false}, 2});
    cases.push_back({OpType::kArgMax, {rows}, ArgAttributes{.axis = axis}});
    cases.push_back({OpType::kCumSum, {rows}, CumSumAttributes{.axis = axis, .exclusive = axis == 0}});
    cases.push_back({OpType::kLpNormalization, {rows}, LpNormAttributes{axis, 2}});
    cases.push_back({OpType::kLpNormGrad, {rows, rows}, LpNormAttributes{axis, 1}});
  }
  return cases;
}

std::vector<Case> ElementCases() {
  const Shape rows = {37, 83};
  std::vector<Case> cases = {{OpType::kMaxGrad, {rows, rows, {83}}, NoAttributes{}, 2},
                             {OpType::kMin, {rows, {83}}, NoAttributes{}},
                             {OpType::kDepthToSpace, {{2, 8, 5, 19}}, BlockAttributes{2}},
                             {OpType::kSpaceToDepth, {{2, 3, 9, 21}}, BlockAttributes{3}},
                             {OpType::kTile, {rows}, TileAttributes{{2, 3}}}};
  for (const OpType op : {OpType::kSin, OpType::kCos, OpType::kTan, OpType::kAsin, OpType::kAtan, OpType::kSinh,
                          OpType::kCosh, OpType::kAsinh, OpType::kAtanh}) {
    cases.push_back({op, {rows}, NoAttributes{}});
  }
  cases.push_back({OpType::kAtanGrad, {rows, rows}, NoAttributes{}});
  for (const PointwiseLossKind kind : {PointwiseLossKind::kMse, PointwiseLossKind::kL1, PointwiseLossKind::kHuber,
                                       PointwiseLossKind::kBceWithLogits}) {
    for (const Reduction reduction : {Reduction::kMean, Reduction::kNone}) {
      const PointwiseLossAttributes loss{.kind = kind, .reduction = reduction};
      const Shape shape = {130, 83};  // several blocks of a sum
      cases.push_back({OpType::kPointwiseLoss, {shape, shape}, loss});
      const Shape dloss = reduction == Reduction::kNone ? shape : Shape{};
      cases.push_back({OpType::kPointwiseLossGrad, {dloss, shape, shape}, loss});
    }
  }
  return cases;
}

// Rows of few elements, powers by blocks, windows by rows.
std::vector<Case> ShortCases() {
  std::vector<Case> cases = {{OpType::kPow, {{37, 83}, {}}, NoAttributes{}, 1, true},
                             {OpType::kPow, {{37, 83}, {}}, NoAttributes{}},
                             {OpType::kPowGrad, {{37, 83}, {37, 83}, {}}, NoAttributes{}, 1, true},
                             {OpType::kTranspose, {{301, 2}}, TransposeAttributes{{1, 0}}},
                             {OpType::kTranspose, {{2, 301}}, TransposeAttributes{{1, 0}}},
                             {OpType::kTranspose, {{5, 301, 3}}, TransposeAttributes{{0, 2, 1}}}};
  for (const int64_t length : {1, 2, 3, 4, 5, 8, 13, 16, 17}) {
    cases.push_back({OpType::kReduceSum, {{301, length}}, ReduceAttributes{{1}, false, false}});
    cases.push_back({OpType::kExpand, {{7, 301, 1}}, ExpandAttributes{{7, 301, length}}});
    cases.push_back({OpType::kSlice, {{301, 20}}, SliceAttributes{{1}, {1 + length}, {1}, {1}}});
    cases.push_back({OpType::kSlice, {{7, 301, 40}}, SliceAttributes{{1}, {2 * length}, {2}, {2}}});
    cases.push_back({OpType::kConcat, {{301, length}, {301, 3}}, ConcatAttributes{1}});
  }
  for (const int64_t stride : {1, 2, 3}) {
    PoolAttributes pool;
    pool.kernel_shape = {3, 2};
    pool.strides = {1, stride};
    pool.pads = {1, 1, 1, 0};
    pool.dilations = {1, stride == 1 ? 2 : 1};
    const int64_t width = (300 + 1 - (stride == 1 ? 3 : 2)) / stride + 1;
    cases.push_back({OpType::kAveragePool, {{2, 3, 5, 300}}, pool});
    pool.input_shape = {2, 3, 5, 300};
    cases.push_back({OpType::kAveragePoolGrad, {{2, 3, 5, width}}, pool});
  }
  return cases;
}

// Every output's bytes; `find` has to serve the case.
std::vector<std::vector<float>> Compute(const Case& c, FindFunction find) {
  Graph graph;
  Node node{.name = "node", .op = c.op};
  node.attributes = c.attributes;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    node.inputs.push_back("x" + std::to_string(i));
    graph.values[node.inputs.back()] = {DType::kF32, c.inputs[i]};
  }
  for (int i = 0; i < c.outputs; ++i) node.outputs.push_back("y" + std::to_string(i));
  REQUIRE(AppendNode(&graph, node).ok());

  KernelRequest request{.node = &node};
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<float>> outputs;
  KernelArguments arguments;
  for (const std::string& name : node.inputs) {
    request.inputs.push_back({.shape = graph.values.at(name).shape});
    const RandomStream random = RandomStream::For(3, StreamOfName(name));
    auto& values = inputs.emplace_back(NumElements(request.inputs.back().shape));
    for (size_t i = 0; i < values.size(); ++i) values[i] = 3.0f * SymmetricUnit(random.At(i));
    for (float& value : values) value = c.positive ? std::abs(value) : value;
  }
  for (const std::string& name : node.outputs) {
    const ValueInfo& info = graph.values.at(name);
    request.outputs.push_back({.dtype = info.dtype, .shape = info.shape});
    outputs.emplace_back(NumElements(info.shape) * DTypeSize(info.dtype) / static_cast<int64_t>(sizeof(float)));
  }
  for (auto& values : inputs) arguments.inputs.push_back(reinterpret_cast<std::byte*>(values.data()));
  for (auto& values : outputs) arguments.outputs.push_back(reinterpret_cast<std::byte*>(values.data()));
  const OwnFunction own = find(request);
  REQUIRE(own.function != nullptr);
  std::vector<double> workspace(own.workspace_bytes / sizeof(double) + 1);
  arguments.workspace = reinterpret_cast<std::byte*>(workspace.data());
  const auto kernel = MakeHostKernel(request, own.function, {.implementation = own.name});
  REQUIRE(kernel->Bind(arguments).ok());
  REQUIRE(kernel->Launch(*NewImmediateStream()).ok());
  return outputs;
}

TEST_CASE("own kernels: every instruction set gives the same bits", "[device]") {
  std::vector<Case> cases = Cases();
  for (const std::vector<Case>& more : {LineCases(), ElementCases(), ShortCases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  for (const Case& c : cases) {
    const auto expected = Compute(c, &portable::FindOwn);
    for (const Code& code : Codes()) {
      INFO(OpName(c.op) << " by " << code.name);
      const auto got = Compute(c, code.find);
      for (size_t i = 0; i < got.size(); ++i) {
        CHECK(std::memcmp(got[i].data(), expected[i].data(), got[i].size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("own kernels: powers of a block are those of its elements", "[device]") {
  for (const bool positive : {true, false}) {
    const Case c{OpType::kPow, {{37, 83}, {}}, NoAttributes{}, 1, positive};
    const RandomStream bases = RandomStream::For(3, StreamOfName("x0"));
    const float drawn = 3.0f * SymmetricUnit(RandomStream::For(3, StreamOfName("x1")).At(0));
    const float exponent = positive ? std::abs(drawn) : drawn;
    for (const Code& code : Codes()) {
      INFO(code.name);
      const std::vector<float> powers = Compute(c, code.find)[0];
      int differing = 0;
      for (size_t i = 0; i < powers.size(); ++i) {
        const float drawn_base = 3.0f * SymmetricUnit(bases.At(i));
        const float expected = Pow(positive ? std::abs(drawn_base) : drawn_base, exponent);
        differing += std::memcmp(&expected, &powers[i], sizeof expected) != 0 ? 1 : 0;
      }
      CHECK(differing == 0);
    }
  }
}

std::vector<Case> AttentionCases() {
  const AttentionAttributes attributes{.scale = 0.05, .causal = true};
  const Shape q = {2, 4, 67, 21};
  const Shape k = {2, 2, 67, 21};
  return {{OpType::kAttention, {q, k, k}, attributes, 2},
          {OpType::kAttentionGrad, {q, q, k, k, q, {2, 4, 67, 2}}, attributes, 3}};
}

Case WeightGradient(const Shape& dy, const Shape& x, const ConvAttributes& attributes) {
  return {OpType::kConvGradWeight, {dy, x}, attributes, 2};
}

// A filter per channel, wider than what is left of planes, with more channels than lanes; one channel, with steps and
// other padding on each side, in filters wider than what is summed at a time; lines.
std::vector<Case> WeightGradientCases() {
  return {
      WeightGradient({3, 19, 6, 5}, {3, 19, 6, 5}, {.kernel_shape = {7, 7}, .pads = {3, 3, 3, 3}, .group = 19}),
      WeightGradient({2, 20, 2, 1}, {2, 20, 2, 1}, {.kernel_shape = {7, 5}, .pads = {3, 2, 3, 2}, .group = 20}),
      WeightGradient({11, 6, 8, 7}, {11, 1, 12, 11}, {.kernel_shape = {5, 5}}),
      WeightGradient({2, 33, 5, 6}, {2, 1, 10, 17}, {.kernel_shape = {3, 9}, .strides = {2, 3}, .pads = {0, 1, 1, 6}}),
      WeightGradient({5, 7, 9}, {5, 1, 19}, {.kernel_shape = {13}, .strides = {1}, .pads = {1, 1}, .dilations = {1}})};
}

// The gradients of weights and of a bias by their definition, in double.
std::vector<std::vector<double>> Defined(const Case& c) {
  const auto& attributes = std::get<ConvAttributes>(c.attributes);
  const Window window(attributes);
  const Shape& dy = c.inputs[0];
  const Shape& x = c.inputs[1];
  const RandomStream dys = RandomStream::For(3, StreamOfName("x0")), xs = RandomStream::For(3, StreamOfName("x1"));
  const auto drawn = [](const RandomStream& random, int64_t i) {
    return double{3.0f * SymmetricUnit(random.At(static_cast<uint64_t>(i)))};
  };
  const int64_t y_volume = VolumeOf(SpatialOf(dy)), x_volume = VolumeOf(SpatialOf(x));
  const int64_t filter = VolumeOf(window.kernel), channels = x[1] / attributes.group;
  std::vector<std::vector<double>> sums = {std::vector<double>(static_cast<size_t>(dy[1] * channels * filter)),
                                           std::vector<double>(static_cast<size_t>(dy[1]))};
  for (int64_t plane = 0; plane < dy[0] * dy[1]; ++plane) {
    const int64_t n = plane / dy[1], o = plane % dy[1];
    const int64_t first = n * x[1] + (attributes.group > 1 ? o : 0);
    ForEachPosition(SpatialOf(dy), [&](int64_t at, const Spatial& place) {
      const double d = drawn(dys, plane * y_volume + at);
      sums[1][static_cast<size_t>(o)] += d;
      for (int64_t channel = 0; channel < channels; ++channel) {
        window.ForEachInside(SpatialOf(x), place, [&](int64_t i, int64_t k) {
          sums[0][static_cast<size_t>((o * channels + channel) * filter + k)] +=
              d * drawn(xs, (first + channel) * x_volume + i);
        });
      }
    });
  }
  return sums;
}

TEST_CASE("own kernels: gradients of weights are those of their definition", "[device]") {
  for (const Case& c : WeightGradientCases()) {
    const auto expected = Defined(c);
    for (const Code& code : Codes()) {
      INFO("filters " << c.inputs[0][1] << " by " << code.name);
      const auto got = Compute(c, code.find);
      for (size_t i = 0; i < got.size(); ++i) {
        REQUIRE(got[i].size() == expected[i].size());
        double difference = 0;
        for (size_t j = 0; j < got[i].size(); ++j) {
          difference = std::max(difference, std::fabs(expected[i][j] - double{got[i][j]}));
        }
        CHECK(difference < 1e-4);
      }
    }
  }
}

TEST_CASE(
    "own kernels: attention, gradients of weights, lines and losses give the same bits with any number of threads",
    "[device]") {
  const int before = omp_get_max_threads();
  std::vector<Case> cases = AttentionCases();
  for (const std::vector<Case>& more : {WeightGradientCases(), LineCases(), ElementCases(), ShortCases()}) {
    cases.insert(cases.end(), more.begin(), more.end());
  }
  for (const Case& c : cases) {
    for (const Code& code : Codes()) {
      INFO(OpName(c.op) << " by " << code.name);
      omp_set_num_threads(1);
      const auto expected = Compute(c, code.find);
      for (const int threads : {2, 3, 5}) {
        omp_set_num_threads(threads);
        const auto got = Compute(c, code.find);
        for (size_t i = 0; i < got.size(); ++i) {
          CHECK(std::memcmp(got[i].data(), expected[i].data(), got[i].size() * sizeof(float)) == 0);
        }
      }
    }
  }
  omp_set_num_threads(before);
}

// Without fused multiplication and addition products round otherwise: portable code is close only.
TEST_CASE("own kernels: attention and gradients of weights have the same bits wherever products are fused",
          "[device]") {
  std::vector<Case> cases = AttentionCases();
  for (const Case& more : WeightGradientCases()) cases.push_back(more);
  for (const Case& c : cases) {
    const auto portable = Compute(c, &portable::FindOwn);
    std::vector<std::vector<float>> fused;
    for (const Code& code : Codes()) {
      if (code.find == &portable::FindOwn) continue;
      INFO(OpName(c.op) << " by " << code.name);
      const auto got = Compute(c, code.find);
      if (fused.empty()) fused = got;
      for (size_t i = 0; i < got.size(); ++i) {
        CHECK(std::memcmp(got[i].data(), fused[i].data(), got[i].size() * sizeof(float)) == 0);
        double largest = 0;
        double difference = 0;
        for (size_t j = 0; j < got[i].size(); ++j) {
          largest = std::max(largest, std::fabs(double{portable[i][j]}));
          difference = std::max(difference, std::fabs(double{portable[i][j]} - got[i][j]));
        }
        CHECK(difference < 1e-4 * largest);
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::device::cpu
