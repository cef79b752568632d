// Products and convolutions of the CUDA device in host execution whose shapes the random cases do not reach: sums in
// parts, large tiles, batches that broadcast in several runs.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/contracts/device_case_builder.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"

namespace lockstep {
namespace {

using device::DeviceKind;

// A graph of one op.
DeviceCase CaseOf(OpType op, const std::vector<Shape>& inputs, const OpAttributes& attributes, int64_t terms,
                  int outputs = 1) {
  DeviceCase c;
  c.terms = terms;
  c.sums_of_products = true;
  CaseBuilder b(&c);
  std::vector<std::string> names;
  for (const Shape& shape : inputs) names.push_back(b.In(shape));
  b.Op(op, names, attributes, outputs);
  return c;
}

void CheckAgainstReference(const DeviceCase& c) {
  const auto reference = Must(device::MakeDevice(DeviceKind::kReference, {}));
  const auto cuda = Must(device::MakeCudaDevice({}));
  CompareCase(c, RunCase(*reference, c.graph, 5, false), RunCase(*cuda, c.graph, 5, false),
              RunCase(*reference, c.graph, 5, true));
}

TEST_CASE("products on host: long sums in parts, and large tiles, are the reference's products", "[cuda]") {
  struct Sizes {
    int64_t m, n, k;
  };
  const auto [m, n, k] =
      GENERATE(values<Sizes>({{3, 5, 2000}, {70, 130, 1031}, {1, 1, 5000}, {2050, 2052, 5}, {5, 1, 0}}));
  const bool trans_a = GENERATE(false, true);
  const GemmAttributes attributes{.alpha = 0.5, .beta = 2.0, .trans_a = trans_a, .trans_b = !trans_a};
  INFO(m << " x " << n << " x " << k << (trans_a ? " a transposed" : " b transposed"));

  const Shape a = trans_a ? Shape{k, m} : Shape{m, k};
  const Shape b = trans_a ? Shape{k, n} : Shape{n, k};
  CheckAgainstReference(CaseOf(OpType::kGemm, {a, b, {m, 1}}, attributes, k + 2));
}

TEST_CASE("products on host: a batch that broadcasts in several runs", "[cuda]") {
  CheckAgainstReference(CaseOf(OpType::kMatMul, {{2, 1, 3, 1, 5, 4}, {1, 4, 3, 2, 4, 3}}, NoAttributes(), 4));
  CheckAgainstReference(CaseOf(OpType::kMatMul, {{2, 3, 5, 4}, {4, 7}}, NoAttributes(), 4));
  CheckAgainstReference(
      CaseOf(OpType::kBatchMatMul, {{3, 4, 5}, {2, 3, 4, 7}}, BatchMatMulAttributes{.trans_a = true}, 4));
}

TEST_CASE("products on host: gradients of weights over many positions in parts, with bias, groups and steps",
          "[cuda]") {
  const ConvAttributes attributes{
      .kernel_shape = {3, 2}, .strides = {2, 1}, .pads = {1, 0, 0, 1}, .dilations = {1, 2}, .group = 2};
  const Shape y = {5, 8, 12, 23}, x = {5, 6, 24, 24};

  CheckAgainstReference(CaseOf(OpType::kConvGradWeight, {y, x}, attributes, 5 * 12 * 23, 2));
}

TEST_CASE("products on host: a convolution with few results and many terms is summed in parts", "[cuda]") {
  const ConvAttributes attributes{.kernel_shape = {4, 4}, .strides = {1, 1}, .pads = {0, 0, 0, 0}};

  CheckAgainstReference(CaseOf(OpType::kConv, {{3, 64, 4, 4}, {10, 64, 4, 4}, {10}}, attributes, 64 * 16 + 1));
}

TEST_CASE("products on host: Einstein's sums of two factors over tiles, of others one by one", "[cuda]") {
  struct Sum {
    const char* equation;
    std::vector<Shape> shapes;
    int64_t terms;
  };
  const Sum sum = GENERATE(values<Sum>({{"bij,bjk->bik", {{3, 20, 9}, {3, 9, 70}}, 9},
                                        {"bhqd,bkhd->bqhk", {{2, 3, 30, 8}, {2, 31, 3, 8}}, 8},
                                        {"abc,cda->db", {{4, 17, 5}, {5, 18, 4}}, 20},
                                        {"ij,jk,kl->il", {{4, 5}, {5, 6}, {6, 7}}, 30},
                                        {"ij->", {{40, 50}}, 2000},
                                        {"i,i->i", {{300}, {300}}, 1}}));
  INFO(sum.equation);

  CheckAgainstReference(CaseOf(OpType::kEinsum, sum.shapes, EinsumAttributes{sum.equation}, sum.terms));
}

TEST_CASE("products on host: attention with heads wider than a block, over more keys than one", "[cuda]") {
  AttentionAttributes attributes{.scale = 0.1, .causal = GENERATE(false, true), .q_rows = true, .y_rows = true};
  const int64_t queries = 70, keys = 131, size = 150, value_size = GENERATE(100, 270);
  DeviceCase c;
  c.terms = 8 * (size + value_size + keys) + 8 * queries;
  CaseBuilder b(&c);
  const std::vector<std::string> inputs = {b.In({1, queries, 2, size}), b.In({1, 1, keys, size}),
                                           b.In({1, 1, keys, value_size})};
  const auto forward = b.Op(OpType::kAttention, inputs, attributes, 2);
  const std::string dy = b.In(b.ShapeOf(forward[0]));
  b.Op(OpType::kAttentionGrad, {dy, inputs[0], inputs[1], inputs[2], forward[0], forward[1], ""}, attributes, 3);

  CheckAgainstReference(c);
}

TEST_CASE("products on host: a whole block of keys that a mask rules out with minus infinity weighs nothing",
          "[cuda]") {
  DeviceCase c;
  c.terms = 8 * 300;
  CaseBuilder b(&c);
  const auto zeros = [&](int64_t keys) {
    return b.Op(OpType::kScale, {b.Op(OpType::kAbs, {b.In({1, 1, 1, keys})}, NoAttributes())[0]},
                ScaleAttributes{0.0})[0];
  };
  const std::string ruled_out = b.Op(OpType::kLog, {zeros(70)}, NoAttributes())[0];
  const std::string mask = b.Op(OpType::kConcat, {ruled_out, zeros(40)}, ConcatAttributes{.axis = 3})[0];
  c.graph.outputs.clear();
  const std::vector<std::string> inputs = {b.In({2, 1, 9, 8}), b.In({2, 1, 110, 8}), b.In({2, 1, 110, 8})};
  const auto forward = b.Op(OpType::kAttention, {inputs[0], inputs[1], inputs[2], mask}, AttentionAttributes(), 2);
  const std::string dy = b.In(b.ShapeOf(forward[0]));
  b.Op(OpType::kAttentionGrad, {dy, inputs[0], inputs[1], inputs[2], forward[0], forward[1], mask},
       AttentionAttributes(), 3);

  CheckAgainstReference(c);
}

TEST_CASE("products on host: maxima of integers", "[cuda]") {
  const DType type = GENERATE(DType::kI32, DType::kI64);
  const PoolAttributes attributes{.kernel_shape = {3, 2}, .strides = {2, 1}, .pads = {1, 0, 1, 1}, .ceil_mode = true};
  DeviceCase c;
  CaseBuilder b(&c);
  b.Op(OpType::kMaxPool, {b.In({2, 3, 9, 8}, type)}, attributes);

  CheckAgainstReference(c);
}

}  // namespace
}  // namespace lockstep
