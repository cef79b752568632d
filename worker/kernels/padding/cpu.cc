#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/padding/padding.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr char kName[] = "own:padding";  // outlives every OwnFunction
constexpr int64_t kGrain = 16384;        // elements

struct Padding : PadAxes<8> {
  Padding(const PadAttributes& pad, const Shape& x, const Shape& y) : PadAxes(pad, x, y) {}

  int64_t rows() const {
    int64_t rows = 1;
    for (int d = 1; d < count; ++d) rows *= axes[d].padded;
    return rows;
  }

  // Where row `row` of Y lies in X; -1 for one of the constant.
  int64_t RowOf(int64_t row) const {
    int64_t offset = 0;
    int64_t step = axes[0].extent;
    bool inside = true;
    for (int d = 1; d < count; ++d) {
      const int64_t source = axes[d].Source(row % axes[d].padded);
      row /= axes[d].padded;
      inside = inside && source >= 0;
      offset += source * step;
      step *= axes[d].extent;
    }
    return inside ? offset : -1;
  }
};

// The columns of Y that are columns of X as they lie.
struct Middle {
  explicit Middle(const PadAxis& columns)
      : first(std::min(columns.lead(), columns.padded)),
        count(std::clamp<int64_t>(columns.count(), 0, columns.padded - first)) {}
  int64_t first;
  int64_t count;
};

void Forward(const HostCall& call) {
  const auto& pad = call.attrs<PadAttributes>();
  const Padding padding(pad, call.in_shape(0), call.out_shape(0));
  const PadAxis& columns = padding.axes[0];
  const int64_t width = columns.padded;
  const auto value = static_cast<float>(pad.value);
  const Middle middle(columns);
  ParallelFor(
      padding.rows(), std::max<int64_t>(1, kGrain / std::max<int64_t>(1, width)), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          float* y = call.out<float>(0) + row * width;
          const int64_t from = padding.RowOf(row);
          if (from < 0) {
            std::fill_n(y, width, value);
            continue;
          }
          const float* x = call.in<float>(0) + from;
          const auto fill = [&](int64_t low, int64_t high) {
            for (int64_t c = low; c < high; ++c) {
              const int64_t source = columns.Source(c);
              y[c] = source < 0 ? value : x[source];
            }
          };
          fill(0, middle.first);
          if (middle.count > 0) {
            std::memcpy(y + middle.first, x + columns.first(), static_cast<size_t>(middle.count) * sizeof(float));
          }
          fill(middle.first + middle.count, width);
        }
      });
}

// Nothing in front of the outermost axis: what is summed there lies apart for each of its elements.
void Backward(const HostCall& call) {
  const Padding padding(call.attrs<PadAttributes>(), call.out_shape(0), call.in_shape(0));
  const PadAxis& columns = padding.axes[0];
  const Middle middle(columns);
  const PadAxis& outermost = padding.axes[padding.count - 1];
  const bool apart = padding.count > 1 && outermost.before == 0 && outermost.behind == 0;
  const int64_t planes = apart ? outermost.extent : 1;
  const int64_t rows = padding.rows() / std::max<int64_t>(1, planes);
  int64_t plane_size = 1;
  for (int d = 0; d + (apart ? 1 : 0) < padding.count; ++d) plane_size *= padding.axes[d].extent;
  ParallelFor(planes, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, rows * columns.padded)),
              [&](int64_t begin, int64_t end) {
                std::fill(call.out<float>(0) + begin * plane_size, call.out<float>(0) + end * plane_size, 0.0f);
                for (int64_t row = begin * rows; row < end * rows; ++row) {
                  const int64_t to = padding.RowOf(row);
                  if (to < 0) continue;
                  float* dx = call.out<float>(0) + to;
                  const float* dy = call.in<float>(0) + row * columns.padded;
                  const auto give = [&](int64_t low, int64_t high) {
                    for (int64_t c = low; c < high; ++c) {
                      const int64_t source = columns.Source(c);
                      if (source >= 0) dx[source] += dy[c];
                    }
                  };
                  give(0, middle.first);
                  float* const inside = dx + columns.first();
#pragma GCC ivdep
                  for (int64_t c = 0; c < middle.count; ++c) inside[c] += dy[middle.first + c];
                  give(middle.first + middle.count, columns.padded);
                }
              });
}

}  // namespace

OwnFunction OwnPadding(const KernelRequest& request) {
  const bool backward = request.node->op == OpType::kPadGrad;
  if (request.node->op != OpType::kPad && !backward) return {};
  const Shape& x = backward ? request.outputs[0].shape : request.inputs[0].shape;
  const Shape& y = backward ? request.inputs[0].shape : request.outputs[0].shape;
  if (!Padding(AttributesOf<PadAttributes>(request), x, y).fits) return {.refusal = kManyDimensions};
  return {backward ? &Backward : &Forward, kName};
}

}  // namespace lockstep::device::cpu::LS_CODE
