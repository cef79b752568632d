// Ops that pick or write single elements, or slices at coordinates, by index; F32 elements.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>

#include "worker/kernels/arithmetic/arithmetic.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = 16384;  // elements
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Lines along an axis of X [outer, extent, inner] and of indices [outer, count, inner].
struct Lines {
  Lines(const Shape& x, const Shape& indices, int64_t axis) : e(axis, x), count(AxisExtents(axis, indices).extent) {
    const auto a = static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis);
    for (size_t i = 0; i < x.size(); ++i) fits = fits && (i == a || x[i] == indices[i]);
  }
  AxisExtents e;
  int64_t count;
  bool fits = true;  // but for the axis the shapes are the same

  // visit(picked, source) for the elements of index `o` in front of the axis, in index order: as VisitPicks does.
  template <typename Visit>
  void VisitOuter(const Indices& indices, int64_t o, const Visit& visit) const {
    int64_t picked = o * count * e.inner;
    for (int64_t j = 0; j < count; ++j) {
      for (int64_t i = 0; i < e.inner; ++i, ++picked) {
        const int64_t index = indices.at(picked, e.extent);
        visit(picked, index < 0 ? -1 : (o * e.extent + index) * e.inner + i);
      }
    }
  }
};

// The axis of an op that takes single elements along one.
struct ElementAxis {
  explicit ElementAxis(const HostCall& call) {
    if (call.op == OpType::kGatherElements || call.op == OpType::kGatherElementsGrad) {
      axis = call.attrs<GatherAttributes>().axis;
      exists = true;
    } else if (call.op == OpType::kScatterElements || call.op == OpType::kScatterElementsGrad) {
      axis = call.attrs<ScatterAttributes>().axis;
      exists = true;
    }
  }
  int64_t axis = 0;
  bool exists = false;
};

// As VisitPicks, without a division per element where the shapes allow it.
template <typename Visit>
void VisitAll(const HostCall& call, const Shape& x, const Visit& visit) {
  if (const ElementAxis element(call); element.exists) {
    const Lines lines(x, call.in_shape(1), element.axis);
    const Indices indices(call, 1);
    for (int64_t o = 0; lines.fits && o < lines.e.outer; ++o) {
      lines.VisitOuter(indices, o, [&](int64_t picked, int64_t source) { visit(picked, source, int64_t{1}); });
    }
    if (lines.fits) return;
  }
  VisitPicks(call, x, visit);
}

void Pick(const HostCall& call) {
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  if (const ElementAxis element(call); element.exists) {
    const Lines lines(call.in_shape(0), call.in_shape(1), element.axis);
    if (lines.fits) {
      const Indices indices(call, 1);
      const int64_t grain = std::max<int64_t>(1, kGrain / (lines.count * lines.e.inner));
      ParallelFor(lines.e.outer, grain, [&](int64_t begin, int64_t end) {
        for (int64_t o = begin; o < end; ++o) {
          lines.VisitOuter(indices, o,
                           [&](int64_t picked, int64_t source) { y[picked] = source < 0 ? kNan : x[source]; });
        }
      });
      return;
    }
  }
  VisitPicks(call, call.in_shape(0), [=](int64_t picked, int64_t source, int64_t length) {
    if (source < 0) {
      std::fill_n(y + picked, length, kNan);
    } else {
      std::memcpy(y + picked, x + source, static_cast<size_t>(length) * sizeof(float));
    }
  });
}

// Adds a line's dY to the sums of the elements that it was picked from. False where an index lies outside.
template <typename Index>
bool AddLine(const Index* indices, const float* dy, int64_t count, int64_t extent, double* sums) {
  bool inside = true;
  for (int64_t j = 0; j < count; ++j) {
    const int64_t given = indices[j];
    const int64_t index = given < 0 ? given + extent : given;
    if (index < 0 || index >= extent) {
      inside = false;
      continue;
    }
    sums[index] += dy[j];
  }
  return inside;
}

// Every dY is added where it was picked, in index order, in double; rounded once. Of lines the workspace holds what has
// one index in front of the axis, else all.
void PickGrad(const HostCall& call) {
  const float* dy = call.in<float>(0);
  float* dx = call.out<float>(0);
  auto* sums = reinterpret_cast<double*>(call.workspace);
  const int64_t all = NumElements(call.out_shape(0));
  bool outside = false;
  const ElementAxis element(call);
  const Lines lines(call.out_shape(0), element.exists ? call.in_shape(1) : call.out_shape(0), element.axis);
  if (element.exists && lines.fits) {
    const Indices indices(call, 1);
    const int64_t size = lines.e.extent * lines.e.inner;
    for (int64_t o = 0; o < lines.e.outer; ++o) {
      std::fill_n(sums, size, 0.0);
      const int64_t first = o * lines.count;
      if (lines.e.inner == 1 && call.input_infos[1].dtype == DType::kI64) {
        outside |= !AddLine(call.in<int64_t>(1) + first, dy + first, lines.count, size, sums);
      } else if (lines.e.inner == 1) {
        outside |= !AddLine(call.in<int32_t>(1) + first, dy + first, lines.count, size, sums);
      } else {
        lines.VisitOuter(indices, o, [&](int64_t picked, int64_t source) {
          outside = outside || source < 0;
          if (source >= 0) sums[source - o * size] += dy[picked];
        });
      }
      for (int64_t i = 0; i < size; ++i) dx[o * size + i] = static_cast<float>(sums[i]);
    }
  } else {
    std::fill_n(sums, all, 0.0);
    VisitPicks(call, call.out_shape(0), [&](int64_t picked, int64_t source, int64_t length) {
      outside = outside || source < 0;
      for (int64_t i = 0; source >= 0 && i < length; ++i) sums[source + i] += dy[picked + i];
    });
    for (int64_t i = 0; i < all; ++i) dx[i] = static_cast<float>(sums[i]);
  }
  if (outside) std::fill_n(dx, all, kNan);
}

void Scatter(const HostCall& call) {
  const float* updates = call.in<float>(2);
  float* y = call.out<float>(0);
  const int64_t count = NumElements(call.out_shape(0));
  if (y != call.in<float>(0)) std::copy_n(call.in<float>(0), count, y);
  bool outside = false;
  VisitAll(call, call.out_shape(0), [&](int64_t picked, int64_t source, int64_t length) {
    outside = outside || source < 0;
    for (int64_t i = 0; source >= 0 && i < length; ++i) y[source + i] = updates[picked + i];
  });
  if (outside) std::fill_n(y, count, kNan);
}

// In double in the workspace, in index order; rounded once.
template <ScatterReduction kReduction>
void ScatterReduce(const HostCall& call) {
  const float* updates = call.in<float>(2);
  float* y = call.out<float>(0);
  const int64_t count = NumElements(call.out_shape(0));
  auto* sums = reinterpret_cast<double*>(call.workspace);
  std::copy_n(call.in<float>(0), count, sums);
  bool outside = false;
  VisitAll(call, call.out_shape(0), [&](int64_t picked, int64_t source, int64_t length) {
    outside = outside || source < 0;
    for (int64_t i = 0; source >= 0 && i < length; ++i) {
      sums[source + i] = Combine(sums[source + i], double{updates[picked + i]}, kReduction);
    }
  });
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(sums[i]);
  if (outside) std::fill_n(y, count, kNan);
}

// dY without what was written.
void ScatterGrad(const HostCall& call) {
  float* dx = call.out<float>(0);
  const int64_t count = NumElements(call.out_shape(0));
  if (dx != call.in<float>(0)) std::copy_n(call.in<float>(0), count, dx);
  VisitAll(call, call.out_shape(0), [=](int64_t, int64_t source, int64_t length) {
    for (int64_t i = 0; source >= 0 && i < length; ++i) dx[source + i] = 0.0f;
  });
}

HostFunction ScatterFunction(ScatterReduction reduction) {
  switch (reduction) {
    case ScatterReduction::kNone:
      return &Scatter;
    case ScatterReduction::kAdd:
      return &ScatterReduce<ScatterReduction::kAdd>;
    case ScatterReduction::kMul:
      return &ScatterReduce<ScatterReduction::kMul>;
    case ScatterReduction::kMax:
      return &ScatterReduce<ScatterReduction::kMax>;
    case ScatterReduction::kMin:
      return &ScatterReduce<ScatterReduction::kMin>;
  }
  return nullptr;
}

}  // namespace

OwnFunction OwnIndexing(const KernelRequest& request) {
  const size_t doubles = static_cast<size_t>(NumElements(request.outputs[0].shape)) * sizeof(double);
  switch (request.node->op) {
    case OpType::kGatherElements:
    case OpType::kGatherND:
      return {&Pick, "own:pick"};
    case OpType::kGatherElementsGrad: {
      const Lines lines(request.outputs[0].shape, request.inputs[1].shape,
                        AttributesOf<GatherAttributes>(request).axis);
      const auto line = static_cast<size_t>(lines.e.extent * lines.e.inner) * sizeof(double);
      return {.function = &PickGrad, .name = "own:pick", .workspace_bytes = lines.fits ? line : doubles};
    }
    case OpType::kGatherNDGrad:
      return {.function = &PickGrad, .name = "own:pick", .workspace_bytes = doubles};
    case OpType::kScatterElements:
    case OpType::kScatterND: {
      const ScatterReduction reduction = request.node->op == OpType::kScatterND
                                             ? AttributesOf<ScatterNdAttributes>(request).reduction
                                             : AttributesOf<ScatterAttributes>(request).reduction;
      return {.function = ScatterFunction(reduction),
              .name = "own:scatter",
              .workspace_bytes = reduction == ScatterReduction::kNone ? 0 : doubles};
    }
    case OpType::kScatterElementsGrad:
    case OpType::kScatterNDGrad:
      return {&ScatterGrad, "own:scatter"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cpu::LS_CODE
