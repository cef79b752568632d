#include "worker/collectives/call.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
const char* Call::KindName() const {
  switch (kind) {
    case CallKind::kReduceScatterSum:
      return "reduce-scatter";
    case CallKind::kAllGather:
      return "all-gather";
    case CallKind::kReduceConvertGather:
      return "reduce-convert-gather";
    case CallKind::kAllReduceSumInt64:
      return "integer all-reduce";
    case CallKind::kAllReduceSumFloat:
      return "float all-reduce";
    case CallKind::kBroadcast:
      return "broadcast";
  }
  return "unknown call";
}

absl::Status Call::Check(int ranks) const {
  switch (kind) {
    case CallKind::kReduceScatterSum:
      return CheckBlocks(blocks, ranks, integers.size());
    case CallKind::kAllGather:
      return CheckBlocks(blocks, ranks, bytes.size());
    case CallKind::kReduceConvertGather:
      if (addends.size() != floats.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(addends.size(), " sums cannot be converted into ", floats.size(), " floats"));
      }
      return CheckBlocks(blocks, ranks, addends.size());
    case CallKind::kBroadcast:
      if (root < 0 || root >= ranks) {
        return absl::InvalidArgumentError(absl::StrCat("no rank ", root, " among ", ranks, " to broadcast from"));
      }
      return absl::OkStatus();
    case CallKind::kAllReduceSumInt64:
    case CallKind::kAllReduceSumFloat:
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

std::string Call::Name() const {
  return absl::StrCat(KindName(), " ", sequence, " of step ", tag.step, ", attempt ", tag.attempt);
}

std::string Call::DifferenceFrom(const Call& other) const {
  if (kind == other.kind && tag == other.tag && root == other.root && blocks == other.blocks &&
      integers.size() == other.integers.size() && addends.size() == other.addends.size() &&
      floats.size() == other.floats.size() && bytes.size() == other.bytes.size()) {
    return "";
  }
  const auto describe = [](const Call& call) {
    return absl::StrCat(call.Name(), " over ", call.integers.size() + call.addends.size(), " integers, ",
                        call.floats.size(), " floats, ", call.bytes.size(), " bytes");
  };
  return absl::StrCat(describe(*this), " against ", describe(other));
}

Handle CallCommunicator::Submit(Call call) {
  if (const absl::Status valid = call.Check(size()); !valid.ok()) return EndedHandle(valid);
  call.sequence = ++last_sequence_;
  Handle handle = call.completion;
  Enqueue(std::move(call));
  return handle;
}

Handle CallCommunicator::ReduceScatterSum(Tag tag, absl::Span<int64_t> values, absl::Span<const int64_t> block_sizes) {
  return Submit({.kind = CallKind::kReduceScatterSum,
                 .tag = tag,
                 .integers = values,
                 .blocks = {block_sizes.begin(), block_sizes.end()}});
}

Handle CallCommunicator::AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) {
  return Submit(
      {.kind = CallKind::kAllGather, .tag = tag, .bytes = bytes, .blocks = {block_bytes.begin(), block_bytes.end()}});
}

Handle CallCommunicator::ReduceConvertGather(Tag tag, absl::Span<const int64_t> addends, absl::Span<float> out,
                                             absl::Span<const int64_t> block_sizes, ConvertPiece convert) {
  return Submit({.kind = CallKind::kReduceConvertGather,
                 .tag = tag,
                 .addends = addends,
                 .floats = out,
                 .blocks = {block_sizes.begin(), block_sizes.end()},
                 .convert = std::move(convert)});
}

Handle CallCommunicator::AllReduceSum(Tag tag, absl::Span<int64_t> values) {
  return Submit({.kind = CallKind::kAllReduceSumInt64, .tag = tag, .integers = values});
}

Handle CallCommunicator::AllReduceSum(Tag tag, absl::Span<float> values) {
  return Submit({.kind = CallKind::kAllReduceSumFloat, .tag = tag, .floats = values});
}

Handle CallCommunicator::Broadcast(Tag tag, int root, absl::Span<char> bytes) {
  return Submit({.kind = CallKind::kBroadcast, .tag = tag, .bytes = bytes, .root = root});
}

}  // namespace lockstep::worker
