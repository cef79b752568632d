#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "worker/kernels/element_bits.h"
#include "worker/kernels/padding/source.h"
#include "worker/kernels/picks.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// T is an unsigned integer of the elements' size throughout.

// Nested loops, the innermost first: each steps through both tensors.
struct Loops {
  struct Loop {
    int64_t count;
    int64_t from_step;
    int64_t to_step;
  };
  absl::InlinedVector<Loop, 12> loops;
  int64_t from = 0;
  int64_t to = 0;

  void Swap() {
    for (Loop& loop : loops) std::swap(loop.from_step, loop.to_step);
    std::swap(from, to);
  }
};

template <typename T>
void Run(const Loops& nest, const T* x, T* y) {
  absl::InlinedVector<int64_t, 12> at(nest.loops.size(), 0);
  for (const Loops::Loop& loop : nest.loops) {
    if (loop.count == 0) return;
  }
  int64_t from = nest.from;
  int64_t to = nest.to;
  size_t axis = 0;
  while (true) {
    y[to] = x[from];
    for (axis = 0; axis < nest.loops.size(); ++axis) {
      const Loops::Loop& loop = nest.loops[axis];
      from += loop.from_step;
      to += loop.to_step;
      if (++at[axis] < loop.count) break;
      at[axis] = 0;
      from -= loop.count * loop.from_step;
      to -= loop.count * loop.to_step;
    }
    if (axis == nest.loops.size()) return;
  }
}

template <typename T>
void Copy(const HostCall& call) {
  const int64_t count = NumElements(call.out_shape(0));
  if (count > 0 && call.out<T>(0) != call.in<T>(0)) std::memcpy(call.out<T>(0), call.in<T>(0), count * sizeof(T));
}

template <typename T>
void Transpose(const HostCall& call) {
  const auto& transpose = call.attrs<TransposeAttributes>();
  const Shape& x = call.in_shape(0);
  const Shape& y = call.out_shape(0);
  Loops nest;
  int64_t to = 1;
  for (size_t i = y.size(); i-- > 0;) {
    nest.loops.push_back({y[i], ProductOf(x, transpose.Source(i, y.size()) + 1, x.size()), to});
    to *= y[i];
  }
  Run(nest, call.in<T>(0), call.out<T>(0));
}

// From [N, b*b*C, H, W] to [N, C, H, row, W, column], or back.
template <typename T>
void Blocks(const HostCall& call) {
  const auto& blocks = call.attrs<BlockAttributes>();
  const bool to_space = call.op == OpType::kDepthToSpace;
  const Shape& deep = to_space ? call.in_shape(0) : call.out_shape(0);
  const int64_t b = blocks.block_size;
  const int64_t channels = deep[1] / (b * b);
  const int64_t area = deep[2] * deep[3];
  const bool dcr = blocks.mode == BlockMode::kDcr;
  const int64_t column_step = dcr ? channels * area : area;
  Loops nest;
  nest.loops = {{b, column_step, 1},
                {deep[3], 1, b},
                {b, b * column_step, b * deep[3]},
                {deep[2], deep[3], b * b * deep[3]},
                {channels, dcr ? area : b * b * area, b * b * area},
                {deep[0], deep[1] * area, deep[1] * area}};
  if (!to_space) nest.Swap();
  Run(nest, call.in<T>(0), call.out<T>(0));
}

template <typename T>
void Expand(const HostCall& call) {
  const Shape& x = call.in_shape(0);
  const Shape& y = call.out_shape(0);
  Loops nest;
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = y.size(); i-- > 0;) {
    const size_t added = y.size() - x.size();
    const int64_t extent = i < added ? 1 : x[i - added];
    nest.loops.push_back({y[i], extent == 1 ? 0 : from, to});
    from *= extent;
    to *= y[i];
  }
  Run(nest, call.in<T>(0), call.out<T>(0));
}

template <typename T>
void Tile(const HostCall& call) {
  const auto& tile = call.attrs<TileAttributes>();
  const Shape& x = call.in_shape(0);
  Loops nest;
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = x.size(); i-- > 0;) {
    nest.loops.push_back({x[i], from, to});
    nest.loops.push_back({tile.repeats[i], 0, x[i] * to});
    from *= x[i];
    to *= x[i] * tile.repeats[i];
  }
  Run(nest, call.in<T>(0), call.out<T>(0));
}

// Between X of shape `whole` and its slice.
Loops SliceLoops(const SliceAttributes& slice, const Shape& whole) {
  const auto rank = static_cast<int64_t>(whole.size());
  Loops nest;
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = whole.size(); i-- > 0;) {
    const SliceRange range = slice.RangeOf(static_cast<int64_t>(i), rank, whole[i]);
    nest.from += range.start * from;
    // A single element takes no step, and a step may be as large as an integer.
    nest.loops.push_back({range.count, range.count > 1 ? range.step * from : 0, to});
    from *= whole[i];
    to *= range.count;
  }
  return nest;
}

template <typename T>
void Slice(const HostCall& call) {
  Run(SliceLoops(call.attrs<SliceAttributes>(), call.in_shape(0)), call.in<T>(0), call.out<T>(0));
}

template <typename T>
void SliceGrad(const HostCall& call) {
  std::fill_n(call.out<T>(0), NumElements(call.out_shape(0)), T{0});
  Loops nest = SliceLoops(call.attrs<SliceAttributes>(), call.out_shape(0));
  nest.Swap();
  Run(nest, call.in<T>(0), call.out<T>(0));
}

// Copies between the whole tensor and a part of it that begins at `begin` of the axis.
template <typename T>
void CopyPart(const AxisExtents& whole, int64_t begin, int64_t length, const T* x, T* y, bool to_whole) {
  Loops nest;
  nest.loops = {{length * whole.inner, 1, 1}, {whole.outer, whole.extent * whole.inner, length * whole.inner}};
  nest.from = begin * whole.inner;
  if (to_whole) nest.Swap();
  Run(nest, x, y);
}

template <typename T>
void Concat(const HostCall& call) {
  const int64_t axis = call.attrs<ConcatAttributes>().axis;
  const AxisExtents whole(axis, call.out_shape(0));
  int64_t begin = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t length = AxisExtents(axis, call.in_shape(i)).extent;
    CopyPart(whole, begin, length, call.in<T>(i), call.out<T>(0), true);
    begin += length;
  }
}

template <typename T>
void Split(const HostCall& call) {
  const auto& split = call.attrs<SplitAttributes>();
  const AxisExtents whole(split.axis, call.in_shape(0));
  const auto count = static_cast<int64_t>(call.outputs.size());
  int64_t begin = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const int64_t equal = std::min((whole.extent + count - 1) / count, whole.extent - begin);
    const int64_t length = split.split.empty() ? equal : split.split[i];
    if (call.output_infos[i].present) CopyPart(whole, begin, length, call.in<T>(0), call.out<T>(i), false);
    begin += length;
  }
}

template <typename T>
void Pad(const HostCall& call) {
  const auto& pad = call.attrs<PadAttributes>();
  const T value = NumberBits<T>(call.output_infos[0].dtype, pad.value);
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const int64_t count = NumElements(call.out_shape(0));
  for (int64_t i = 0; i < count; ++i) {
    const int64_t source = PadSource(pad, i, call.out_shape(0), call.in_shape(0));
    y[i] = source < 0 ? value : x[source];
  }
}

// Gather, GatherElements, GatherND.
template <typename T>
void Pick(const HostCall& call) {
  const T outside = OutsideBits<T>(call.output_infos[0].dtype);
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  VisitPicks(call, call.in_shape(0), [=](int64_t picked, int64_t source, int64_t length) {
    for (int64_t i = 0; i < length; ++i) y[picked + i] = source < 0 ? outside : x[source + i];
  });
}

template <typename T>
HostFunction Find(const Node& node) {
  switch (node.op) {
    case OpType::kFlatten:
    case OpType::kReshape:
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      return &Copy<T>;
    case OpType::kExpand:
      return &Expand<T>;
    case OpType::kTranspose:
      return &Transpose<T>;
    case OpType::kDepthToSpace:
    case OpType::kSpaceToDepth:
      return &Blocks<T>;
    case OpType::kConcat:
      return &Concat<T>;
    case OpType::kSplit:
      return &Split<T>;
    case OpType::kSlice:
      return &Slice<T>;
    case OpType::kSliceGrad:
      return &SliceGrad<T>;
    case OpType::kTile:
      return &Tile<T>;
    case OpType::kPad:
      return &Pad<T>;
    case OpType::kGather:
    case OpType::kGatherElements:
    case OpType::kGatherND:
      return &Pick<T>;
    default:
      return PlacementFunction<T>(node);
  }
}

}  // namespace

HostFunction MovementFunction(const KernelRequest& request) {
  switch (DTypeSize(request.outputs[0].dtype)) {
    case 1:
      return Find<uint8_t>(*request.node);
    case 2:
      return Find<uint16_t>(*request.node);
    case 4:
      return Find<uint32_t>(*request.node);
    default:
      return Find<uint64_t>(*request.node);
  }
}

}  // namespace lockstep::device::reference
