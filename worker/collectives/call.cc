#include "worker/collectives/call.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {
namespace {

absl::Status CheckRuns(absl::Span<const ExactRun> runs, int64_t elements) {
  int64_t end = 0;
  for (const ExactRun& run : runs) {
    if (run.begin < end || run.size < 0 || run.end() > elements) {
      return absl::InvalidArgumentError(absl::StrCat("a run of ", run.size, " elements from ", run.begin,
                                                     " on does not follow those that end at ", end, " of ", elements));
    }
    end = run.end();
  }
  return absl::OkStatus();
}

}  // namespace

const char* Call::KindName() const {
  switch (kind) {
    case CallKind::kAllGather:
      return "all-gather";
    case CallKind::kAllReduceExact:
      return "exact all-reduce";
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
    case CallKind::kAllGather:
      return CheckBlocks(blocks, ranks, bytes.size());
    case CallKind::kAllReduceExact:
      if (addends.size() != floats.size()) {
        return absl::InvalidArgumentError(
            absl::StrCat(addends.size(), " addends cannot be summed into ", floats.size(), " floats"));
      }
      return CheckRuns(runs, static_cast<int64_t>(floats.size()));
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
  if (kind == other.kind && tag == other.tag && root == other.root && blocks == other.blocks && runs == other.runs &&
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

Handle CallCommunicator::AllGather(Tag tag, absl::Span<char> bytes, absl::Span<const int64_t> block_bytes) {
  return Submit(
      {.kind = CallKind::kAllGather, .tag = tag, .bytes = bytes, .blocks = {block_bytes.begin(), block_bytes.end()}});
}

Handle CallCommunicator::AllReduceExact(Tag tag, ExactAddends addends, absl::Span<float> out,
                                        absl::Span<const ExactRun> runs) {
  return Submit({.kind = CallKind::kAllReduceExact,
                 .tag = tag,
                 .addends = addends,
                 .floats = out,
                 .runs = {runs.begin(), runs.end()}});
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
