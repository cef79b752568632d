// Ops that move elements without looking at them, to places that shapes alone decide: all are strided copies.
#include <algorithm>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/strided_copy.h"
#include "worker/kernels/picks.h"

namespace lockstep::device::cuda {
namespace {

CopyLoops TransposeLoops(const TransposeAttributes& transpose, const Shape& x, const Shape& y) {
  CopyLoops loops;
  int64_t to = 1;
  for (size_t i = y.size(); i-- > 0;) {
    loops.Add(y[i], ProductOf(x, transpose.Source(i, y.size()) + 1, x.size()), to);
    to *= y[i];
  }
  return loops;
}

// From [N, b*b*C, H, W] to [N, C, H, row, W, column], or back.
CopyLoops BlockLoops(const BlockAttributes& blocks, const Shape& deep, bool to_space) {
  const int64_t b = blocks.block_size;
  const int64_t channels = deep[1] / (b * b);
  const int64_t area = deep[2] * deep[3];
  const bool dcr = blocks.mode == BlockMode::kDcr;
  const int64_t column_step = dcr ? channels * area : area;
  CopyLoops loops({{b, column_step, 1},
                   {deep[3], 1, b},
                   {b, b * column_step, b * deep[3]},
                   {deep[2], deep[3], b * b * deep[3]},
                   {channels, dcr ? area : b * b * area, b * b * area},
                   {deep[0], deep[1] * area, deep[1] * area}});
  if (!to_space) loops.Swap();
  return loops;
}

CopyLoops ExpandLoops(const Shape& x, const Shape& y) {
  CopyLoops loops;
  const size_t added = y.size() - x.size();
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = y.size(); i-- > 0;) {
    const int64_t extent = i < added ? 1 : x[i - added];
    loops.Add(y[i], extent == 1 ? 0 : from, to);
    from *= extent;
    to *= y[i];
  }
  return loops;
}

CopyLoops TileLoops(const TileAttributes& tile, const Shape& x) {
  CopyLoops loops;
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = x.size(); i-- > 0;) {
    loops.Add(x[i], from, to);
    loops.Add(tile.repeats[i], 0, x[i] * to);
    from *= x[i];
    to *= x[i] * tile.repeats[i];
  }
  return loops;
}

// Between X of shape `whole` and its slice.
CopyLoops SliceLoops(const SliceAttributes& slice, const Shape& whole) {
  const auto rank = static_cast<int64_t>(whole.size());
  CopyLoops loops;
  int64_t from = 1;
  int64_t to = 1;
  for (size_t i = whole.size(); i-- > 0;) {
    const SliceRange range = slice.RangeOf(static_cast<int64_t>(i), rank, whole[i]);
    loops.from += range.start * from;
    // A single element takes no step, and a step may be as large as an integer.
    loops.Add(range.count, range.count > 1 ? range.step * from : 0, to);
    from *= whole[i];
    to *= range.count;
  }
  return loops;
}

// Between the whole tensor and a part of it that begins at `begin` of the axis.
CopyLoops PartLoops(const AxisExtents& whole, int64_t begin, int64_t length) {
  CopyLoops loops({{length * whole.inner, 1, 1}, {whole.outer, whole.extent * whole.inner, length * whole.inner}});
  loops.from = begin * whole.inner;
  return loops;
}

// The loops of ops with one input and one output.
CopyLoops LoopsOf(OpType op, const OpAttributes& attributes, const Shape& x, const Shape& y) {
  switch (op) {
    case OpType::kExpand:
      return ExpandLoops(x, y);
    case OpType::kTranspose:
      return TransposeLoops(*std::get_if<TransposeAttributes>(&attributes), x, y);
    case OpType::kDepthToSpace:
      return BlockLoops(*std::get_if<BlockAttributes>(&attributes), x, true);
    case OpType::kSpaceToDepth:
      return BlockLoops(*std::get_if<BlockAttributes>(&attributes), y, false);
    case OpType::kSlice:
      return SliceLoops(*std::get_if<SliceAttributes>(&attributes), x);
    case OpType::kTile:
      return TileLoops(*std::get_if<TileAttributes>(&attributes), x);
    case OpType::kSliceGrad: {
      CopyLoops loops = SliceLoops(*std::get_if<SliceAttributes>(&attributes), y);
      loops.Swap();
      return loops;
    }
    default:
      return CopyLoops({{NumElements(y), 1, 1}});
  }
}

int SizeOf(const DeviceCall& call) { return DTypeSize(call.output_infos[0].dtype); }

absl::Status Copy(const DeviceCall& call, StreamHandle stream) {
  return StridedCopy(stream, LoopsOf(call.op, call.attributes, call.in_shape(0), call.out_shape(0)), SizeOf(call),
                     call.inputs[0], call.outputs[0]);
}

absl::Status CopyIntoZeros(const DeviceCall& call, StreamHandle stream) {
  const size_t bytes = static_cast<size_t>(NumElements(call.out_shape(0))) * static_cast<size_t>(SizeOf(call));
  if (bytes == 0) return absl::OkStatus();
  LS_RETURN_IF_ERROR(Zero(stream, call.outputs[0], bytes));
  return Copy(call, stream);
}

absl::Status Concat(const DeviceCall& call, StreamHandle stream) {
  const int64_t axis = call.attrs<ConcatAttributes>().axis;
  const AxisExtents whole(axis, call.out_shape(0));
  int64_t begin = 0;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const int64_t length = AxisExtents(axis, call.in_shape(i)).extent;
    CopyLoops loops = PartLoops(whole, begin, length);
    loops.Swap();
    LS_RETURN_IF_ERROR(StridedCopy(stream, loops, SizeOf(call), call.inputs[i], call.outputs[0]));
    begin += length;
  }
  return absl::OkStatus();
}

absl::Status Split(const DeviceCall& call, StreamHandle stream) {
  const auto& split = call.attrs<SplitAttributes>();
  const AxisExtents whole(split.axis, call.in_shape(0));
  const auto count = static_cast<int64_t>(call.outputs.size());
  const int size = DTypeSize(call.input_infos[0].dtype);
  int64_t begin = 0;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const int64_t equal = std::min((whole.extent + count - 1) / count, whole.extent - begin);
    const int64_t length = split.split.empty() ? equal : split.split[i];
    if (call.output_infos[i].present) {
      LS_RETURN_IF_ERROR(StridedCopy(stream, PartLoops(whole, begin, length), size, call.inputs[0], call.outputs[i]));
    }
    begin += length;
  }
  return absl::OkStatus();
}

}  // namespace

OwnFunction OwnMovement(const KernelRequest& request) {
  const Node& node = *request.node;
  switch (node.op) {
    case OpType::kFlatten:
    case OpType::kReshape:
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      return {&Copy, "copy"};
    case OpType::kConcat:
      return {&Concat, "strided"};
    case OpType::kSplit:
      return {&Split, "strided"};
    case OpType::kExpand:
    case OpType::kTranspose:
    case OpType::kDepthToSpace:
    case OpType::kSpaceToDepth:
    case OpType::kSlice:
    case OpType::kTile:
    case OpType::kSliceGrad:
      if (!LoopsOf(node.op, node.attributes, request.inputs[0].shape, request.outputs[0].shape).fits())
        return {.refusal = kManyDimensions};
      return {node.op == OpType::kSliceGrad ? &CopyIntoZeros : &Copy, "strided"};
    default:
      return {};
  }
}

}  // namespace lockstep::device::cuda
