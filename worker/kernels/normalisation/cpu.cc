// Layer normalisation and root-mean-square normalisation, forward and backward.
#include <algorithm>

#include "common/math/math.h"
#include "worker/kernels/axis_shapes.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;

void LayerNorm(const HostCall& call) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowExtents e(attributes.axis, call.in_shape(0));
  const float* scale = call.in<float>(1);
  const float* bias = call.in<float>(2);
  const auto count = static_cast<double>(e.width);
  ParallelFor(e.rows, std::max<int64_t>(1, kGrain / e.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = call.in<float>(0) + row * e.width;
      float* y = call.out<float>(0) + row * e.width;
      const double mean = LaneSum(e.width, [x](int64_t i) { return double{x[i]}; }) / count;
      const double squares = LaneSum(e.width, [x, mean](int64_t i) { return (x[i] - mean) * (x[i] - mean); });
      const double inv_std = 1.0 / SquareRoot(squares / count + attributes.epsilon);
      const auto middle = static_cast<float>(mean);
      const auto factor = static_cast<float>(inv_std);
      if (bias != nullptr) {
        for (int64_t i = 0; i < e.width; ++i) y[i] = (x[i] - middle) * factor * scale[i] + bias[i];
      } else {
        for (int64_t i = 0; i < e.width; ++i) y[i] = (x[i] - middle) * factor * scale[i];
      }
      if (call.out<float>(1) != nullptr) call.out<float>(1)[row] = middle;
      if (call.out<float>(2) != nullptr) call.out<float>(2)[row] = factor;
    }
  });
}

double InverseRms(const float* x, int64_t width, double epsilon) {
  const double squares = LaneSum(width, [x](int64_t i) { return double{x[i]} * x[i]; });
  return 1.0 / SquareRoot(squares / static_cast<double>(width) + epsilon);
}

void RmsNorm(const HostCall& call) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowExtents e(attributes.axis, call.in_shape(0));
  const float* scale = call.in<float>(1);
  ParallelFor(e.rows, std::max<int64_t>(1, kGrain / e.width), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = call.in<float>(0) + row * e.width;
      float* y = call.out<float>(0) + row * e.width;
      const auto factor = static_cast<float>(InverseRms(x, e.width, attributes.epsilon));
      for (int64_t i = 0; i < e.width; ++i) y[i] = x[i] * factor * scale[i];
    }
  });
}

// Rows are cut into a number of blocks that follows from their number alone. Each block has its own sums of dScale and
// dBias in the workspace; these are added in the order of the blocks, so that no bit depends on the threads.
constexpr int64_t kMostBlocks = 16;

int64_t Blocks(int64_t rows) { return std::min(rows, kMostBlocks); }

struct Block {
  double* dscale;
  double* dbias;
};

// dX of a row, and its part in the block's sums.
struct Row {
  const float* dy;
  const float* x;
  const float* scale;
  const float* beside;  // what is added to dX, or null
  float* dx;            // null where nobody asked
  int64_t width;

  // dX, whose own part is `gradient` of an index.
  template <typename Gradient>
  void Write(const Gradient& gradient) const {
    if (beside != nullptr) {
      for (int64_t i = 0; i < width; ++i) dx[i] = gradient(i) + beside[i];
    } else {
      for (int64_t i = 0; i < width; ++i) dx[i] = gradient(i);
    }
  }
};

void LayerNormRow(const Row& r, float mean, float inv_std, const Block& block) {
  const float *const dy = r.dy, *const x = r.x, *const scale = r.scale;
  const int64_t width = r.width;
  const auto count = static_cast<double>(width);
  const double sum = LaneSum(width, [=](int64_t i) { return double{dy[i] * scale[i]}; });
  const double dot = LaneSum(width, [=](int64_t i) { return double{dy[i] * scale[i]} * ((x[i] - mean) * inv_std); });
  for (int64_t i = 0; i < width; ++i) {
    block.dscale[i] += dy[i] * ((x[i] - mean) * inv_std);
    block.dbias[i] += dy[i];
  }
  if (r.dx == nullptr) return;
  const auto mean_g = static_cast<float>(sum / count);
  const auto slope = static_cast<float>(dot / count);
  r.Write([=](int64_t i) { return inv_std * (dy[i] * scale[i] - mean_g - (x[i] - mean) * inv_std * slope); });
}

void RmsNormRow(const Row& r, double epsilon, const Block& block) {
  const float *const dy = r.dy, *const x = r.x, *const scale = r.scale;
  const int64_t width = r.width;
  const auto inverse = static_cast<float>(InverseRms(x, width, epsilon));
  const double dot = LaneSum(width, [=](int64_t i) { return double{dy[i] * scale[i]} * (x[i] * inverse); });
  for (int64_t i = 0; i < width; ++i) block.dscale[i] += dy[i] * (x[i] * inverse);
  if (r.dx == nullptr) return;
  const auto slope = static_cast<float>(dot / static_cast<double>(width));
  r.Write([=](int64_t i) { return inverse * (dy[i] * scale[i] - x[i] * inverse * slope); });
}

// Runs body(row, block) over all rows, then adds up the blocks. What is added to dX is input `beside`.
template <typename Body>
void Backward(const HostCall& call, size_t beside, const RowExtents& e, const Body& body) {
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t blocks = Blocks(e.rows);
  const int64_t rows_at_once = std::max<int64_t>(1, kGrain / e.width);
  ParallelFor(blocks, std::max<int64_t>(1, rows_at_once * blocks / e.rows), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const Block block = {sums + 2 * b * e.width, sums + (2 * b + 1) * e.width};
      std::fill_n(block.dscale, 2 * e.width, 0.0);
      for (int64_t row = e.rows * b / blocks; row < e.rows * (b + 1) / blocks; ++row) {
        const auto at_row = [&](auto* values) { return values == nullptr ? nullptr : values + row * e.width; };
        body(row,
             Row{at_row(call.in<float>(0)), at_row(call.in<float>(1)), call.in<float>(2),
                 at_row(call.in<float>(beside)), at_row(call.out<float>(0)), e.width},
             block);
      }
    }
  });
  for (int64_t b = 1; b < blocks; ++b) {
    for (int64_t i = 0; i < 2 * e.width; ++i) sums[i] += sums[2 * b * e.width + i];
  }
  for (size_t output : {1, 2}) {
    float* to = call.out<float>(output);
    if (to == nullptr) continue;
    const double* from = sums + static_cast<int64_t>(output - 1) * e.width;
    for (int64_t i = 0; i < e.width; ++i) to[i] = static_cast<float>(from[i]);
  }
}

void LayerNormGrad(const HostCall& call) {
  const RowExtents e(call.attrs<LayerNormAttributes>().axis, call.in_shape(1));
  Backward(call, 5, e, [&](int64_t row, const Row& r, const Block& block) {
    LayerNormRow(r, call.in<float>(3)[row], call.in<float>(4)[row], block);
  });
}

void RmsNormGrad(const HostCall& call) {
  const auto& attributes = call.attrs<LayerNormAttributes>();
  const RowExtents e(attributes.axis, call.in_shape(1));
  Backward(call, 3, e, [&](int64_t, const Row& r, const Block& block) { RmsNormRow(r, attributes.epsilon, block); });
}

}  // namespace

OwnFunction OwnLayerNorm(const KernelRequest& request) {
  static constexpr char kName[] = "own:layer_norm";
  OwnFunction own;
  switch (request.node->op) {
    case OpType::kLayerNormalization:
      return {&LayerNorm, kName};
    case OpType::kRmsNormalization:
      return {&RmsNorm, kName};
    case OpType::kLayerNormGrad:
      own = {&LayerNormGrad, kName};
      break;
    case OpType::kRmsNormGrad:
      own = {&RmsNormGrad, kName};
      break;
    default:
      return {};
  }
  const RowExtents e(AttributesOf<LayerNormAttributes>(request).axis, request.inputs[1].shape);
  own.workspace_bytes = static_cast<size_t>(2 * Blocks(e.rows) * e.width) * sizeof(double);
  return own;
}

}  // namespace lockstep::device::cpu::LS_CODE
