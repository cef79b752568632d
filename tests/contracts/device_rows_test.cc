// Kernels that walk along rows, over shapes large enough that a row is a block's, is cut in parts, or does not fit into
// registers: CUDA's own in host execution, and the CPU's, against the reference.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/contracts/device_case_builder.h"
#include "tests/contracts/device_cases.h"
#include "tests/contracts/device_comparison.h"
#include "worker/device/choice/devices.h"
#include "worker/device/cuda/make_device.h"

namespace lockstep {
namespace {

using device::Device;
using device::DeviceKind;

class Rows {
 public:
  // fill(builder, case)
  template <typename Fill>
  void Check(const std::string& what, Fill fill) {
    INFO(what);
    DeviceCase c;
    CaseBuilder b(&c);
    fill(b, c);
    const Values expected = RunCase(*reference_, c.graph, 5, false);
    const Values magnitudes = c.sums_of_products ? RunCase(*reference_, c.graph, 5, true) : expected;
    for (Device* device : {cuda_.get(), cpu_.get()}) {
      INFO(device->info().kind);
      const Values got = RunCase(*device, c.graph, 5, false);
      CompareCase(c, expected, got, magnitudes);
      CHECK(got == RunCase(*device, c.graph, 5, false));
    }
  }

 private:
  std::unique_ptr<Device> reference_ = Must(device::MakeDevice(DeviceKind::kReference, {}));
  std::unique_ptr<Device> cuda_ = Must(device::MakeCudaDevice({}));
  std::unique_ptr<Device> cpu_ = Must(device::MakeDevice(DeviceKind::kCpu, {.threads = 2}));
};

std::string NameOf(OpType op, const Shape& shape) {
  std::string name(OpName(op));
  for (const int64_t extent : shape) name += " " + std::to_string(extent);
  return name;
}

TEST_CASE("device rows: softmaxes and their gradients", "[cuda]") {
  Rows rows;
  for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{
           {{2, 9000}, 1}, {{5, 700}, 1}, {{3, 50, 40}, 1}, {{300, 4}, 0}, {{40, 7}, 1}}) {
    for (const bool logarithm : {false, true}) {
      const OpType op = logarithm ? OpType::kLogSoftmax : OpType::kSoftmax;
      rows.Check(NameOf(op, shape), [&](CaseBuilder& b, DeviceCase& c) {
        c.terms = 64;
        const std::string y = b.Op(op, {b.In(shape)}, SoftmaxAttributes{axis})[0];
        b.Op(logarithm ? OpType::kLogSoftmaxGrad : OpType::kSoftmaxGrad, {b.In(shape), y}, SoftmaxAttributes{axis});
      });
    }
  }
}

TEST_CASE("device rows: losses of many classes and of many labels, and their gradients", "[cuda]") {
  Rows rows;
  for (const Shape& scores : {Shape{3, 5000}, Shape{40, 30, 9}, Shape{9, 700}, Shape{6000, 3}}) {
    for (const Reduction reduction : {Reduction::kNone, Reduction::kSum, Reduction::kMean}) {
      Shape labels = scores;
      labels.erase(labels.begin() + 1);
      rows.Check(NameOf(OpType::kSoftmaxCrossEntropyLoss, scores), [&](CaseBuilder& b, DeviceCase& c) {
        const CrossEntropyAttributes attributes{.reduction = reduction, .ignore_index = 1};
        c.terms = 64;
        const std::string label = b.In(labels, DType::kI64);
        const std::string weights = b.In({scores[1]}, DType::kF32, "variance");
        const auto loss = b.Op(OpType::kSoftmaxCrossEntropyLoss, {b.In(scores), label, weights}, attributes, 2);
        const std::string upstream = b.In(b.ShapeOf(loss[0]));
        b.Op(OpType::kSoftmaxCrossEntropyLossGrad, {upstream, loss[1], label, weights}, attributes);
        b.Op(OpType::kNegativeLogLikelihoodLoss, {loss[1], label, weights}, attributes);
        b.Op(OpType::kNegativeLogLikelihoodLossGrad, {upstream, loss[1], label, weights}, attributes);
        CrossEntropyAttributes of_weights = attributes;
        if (reduction == Reduction::kMean) of_weights.reduction = Reduction::kSum;
        b.Op(OpType::kLossWeights, {label, weights}, of_weights);
        const std::string mask = b.In({scores[0]}, DType::kF32, "coarse");
        b.Op(OpType::kCountCorrect, {loss[1], label, mask}, CountCorrectAttributes{.ignore_index = 1}, 3);
      });
    }
  }
}

TEST_CASE("device rows: pointwise losses and masked sums of many elements", "[cuda]") {
  Rows rows;
  const Shape shape = {50, 300};
  for (int kind = 0; kind < 4; ++kind) {
    rows.Check(NameOf(OpType::kPointwiseLoss, {kind}), [&](CaseBuilder& b, DeviceCase& c) {
      const PointwiseLossAttributes attributes{.kind = static_cast<PointwiseLossKind>(kind),
                                               .reduction = kind % 2 == 0 ? Reduction::kMean : Reduction::kSum,
                                               .delta = 0.25};
      c.terms = 64;
      const std::string x = b.In(shape);
      const std::string target = b.In(shape);
      const std::string loss = b.Op(OpType::kPointwiseLoss, {x, target}, attributes)[0];
      b.Op(OpType::kPointwiseLossGrad, {b.In({}), x, target}, attributes);
    });
  }
  rows.Check("masked sum", [&](CaseBuilder& b, DeviceCase& c) {
    c.terms = 64;
    const std::string values = b.In(shape);
    b.Op(OpType::kMaskedSum, {values, b.In({shape[0]}, DType::kF32, "coarse")}, NoAttributes());
  });
}

TEST_CASE("device rows: reductions of long rows, of columns, and of dimensions in between", "[cuda]") {
  Rows rows;
  struct Case {
    Shape shape;
    std::vector<int64_t> axes;
  };
  for (const Case& r : {Case{{20000}, {}}, Case{{3, 6000}, {1}}, Case{{900, 70}, {0}}, Case{{30, 5, 700}, {0, 2}},
                        Case{{700, 3}, {0}}, Case{{6, 5, 7, 40}, {0, 2}}}) {
    for (const OpType op :
         {OpType::kReduceSum, OpType::kReduceMean, OpType::kReduceMax, OpType::kReduceMin, OpType::kReduceL1,
          OpType::kReduceL2, OpType::kReduceSumSquare, OpType::kReduceLogSum, OpType::kReduceLogSumExp}) {
      rows.Check(NameOf(op, r.shape), [&](CaseBuilder& b, DeviceCase& c) {
        c.terms = 64;
        c.sums_of_products = op == OpType::kReduceSum || op == OpType::kReduceMean;
        const ReduceAttributes attributes{.axes = r.axes};
        const std::string x = b.In(r.shape, DType::kF32, op == OpType::kReduceLogSum ? "variance" : "");
        const std::string y = b.Op(op, {x}, attributes)[0];
        if (c.sums_of_products) return;
        static const std::map<OpType, ReduceKind> kinds = {{OpType::kReduceMax, ReduceKind::kMax},
                                                           {OpType::kReduceMin, ReduceKind::kMin},
                                                           {OpType::kReduceL1, ReduceKind::kL1},
                                                           {OpType::kReduceL2, ReduceKind::kL2},
                                                           {OpType::kReduceSumSquare, ReduceKind::kSumSquare},
                                                           {OpType::kReduceLogSum, ReduceKind::kLogSum},
                                                           {OpType::kReduceLogSumExp, ReduceKind::kLogSumExp}};
        const ReduceKind kind = kinds.at(op);
        b.Op(OpType::kReduceGrad, {b.In(b.ShapeOf(y)), x, y}, ReduceGradAttributes{kind, attributes});
      });
    }
    rows.Check(NameOf(OpType::kReduceGrad, r.shape), [&](CaseBuilder& b, DeviceCase& c) {
      c.terms = 64;
      const ReduceAttributes attributes{.axes = r.axes};
      // Few different numbers: ties, and zeros in products.
      const std::string x = b.In(r.shape, DType::kF32, "coarse");
      const std::string y = b.Op(OpType::kReduceMax, {x}, attributes)[0];
      const std::string dy = b.In(b.ShapeOf(y));
      for (const ReduceKind kind : {ReduceKind::kMax, ReduceKind::kFirstMax, ReduceKind::kProd}) {
        b.Op(OpType::kReduceGrad, {dy, x, y}, ReduceGradAttributes{kind, attributes});
      }
    });
  }
}

TEST_CASE("device rows: layer and root mean square normalisation, held in registers and not", "[cuda]") {
  Rows rows;
  for (const Shape& shape : {Shape{300, 96}, Shape{5, 1500}, Shape{3, 9000}, Shape{40, 9}}) {
    rows.Check(NameOf(OpType::kLayerNormalization, shape), [&](CaseBuilder& b, DeviceCase& c) {
      c.terms = 1000;
      const LayerNormAttributes attributes{-1, 1e-2};
      const Shape width = {shape[1]};
      const std::string x = b.In(shape);
      const std::string scale = b.In(width);
      const std::string dy = b.In(shape);
      const auto y = b.Op(OpType::kLayerNormalization, {x, scale, b.In(width)}, attributes, 3);
      c.scale = y[2];
      b.Op(OpType::kLayerNormGrad, {dy, x, scale, y[1], y[2]}, attributes, 3);
      b.Op(OpType::kRmsNormalization, {x, scale}, attributes);
      b.Op(OpType::kRmsNormGrad, {dy, x, scale}, attributes, 2);
    });
  }
}

TEST_CASE("device rows: batch and group normalisation of large planes and of large batches", "[cuda]") {
  Rows rows;
  for (const Shape& shape : {Shape{3, 4, 50, 40}, Shape{600, 40}, Shape{5, 32, 6, 6}}) {
    rows.Check(NameOf(OpType::kBatchNormTraining, shape), [&](CaseBuilder& b, DeviceCase& c) {
      c.terms = 1000;
      const BatchNormAttributes attributes{.unbiased_running_var = true};
      const Shape channels = {shape[1]};
      const std::string x = b.In(shape);
      const std::string dy = b.In(shape);
      const std::string scale = b.In(channels);
      const std::string bias = b.In(channels);
      const std::string variance = b.In(channels, DType::kF32, "variance");
      const auto y = b.Op(OpType::kBatchNormTraining, {x, scale, bias}, attributes, 4);
      c.scale = y[2];
      b.Op(OpType::kBatchNormGrad, {dy, x, scale, y[1], y[2]}, attributes, 3);
      b.Op(OpType::kBatchNormalization, {x, scale, bias, y[1], variance}, attributes);
      b.Op(OpType::kBatchNormFrozenGrad, {dy, x, scale, y[1], variance}, attributes, 3);
      for (const int64_t groups : {int64_t{0}, int64_t{2}}) {
        const GroupNormAttributes of_groups{groups, 1e-2};
        b.Op(groups == 0 ? OpType::kInstanceNormalization : OpType::kGroupNormalization, {x, scale, bias}, of_groups);
        b.Op(OpType::kGroupNormGrad, {dy, x, scale}, of_groups, 3);
      }
    });
  }
}

TEST_CASE("device rows: norms, rankings and running sums along axes", "[cuda]") {
  Rows rows;
  for (const auto& [shape, axis] :
       std::vector<std::pair<Shape, int64_t>>{{{3, 5000}, 1}, {{40, 50}, 1}, {{2, 60, 40}, 1}, {{200, 5}, 0}}) {
    rows.Check(NameOf(OpType::kLpNormalization, shape), [&](CaseBuilder& b, DeviceCase& c) {
      c.terms = 64;
      const std::string x = b.In(shape, DType::kF32, "variance");
      const std::string coarse = b.In(shape, DType::kF32, "coarse");
      const std::string dy = b.In(shape);
      for (const int64_t p : {1, 2}) {
        b.Op(OpType::kLpNormalization, {x}, LpNormAttributes{axis, p});
        b.Op(OpType::kLpNormGrad, {dy, x}, LpNormAttributes{axis, p});
      }
      for (const bool flag : {false, true}) {
        b.Op(OpType::kArgMax, {coarse}, ArgAttributes{axis, true, flag});
        b.Op(OpType::kArgMin, {coarse}, ArgAttributes{axis, true, flag});
        b.Op(OpType::kTopK, {coarse}, TopKAttributes{.k = 7, .axis = axis, .largest = flag}, 2);
        b.Op(OpType::kCumSum, {x}, CumSumAttributes{axis, flag, false});
        b.Op(OpType::kCumSum, {x}, CumSumAttributes{axis, flag, true});
      }
    });
  }
}

}  // namespace
}  // namespace lockstep
