#include "worker/step/state_sync.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/collectives/device_communicator.h"
#include "worker/step/gradient_exchange.h"

namespace lockstep::worker {
namespace {

constexpr size_t kHostPieceBytes = size_t{4} << 20;
// Each shows in the pulse when it has ended.
constexpr size_t kDeviceCallBytes = size_t{64} << 20;

size_t CallsOf(size_t bytes) { return (bytes + kDevicePieceBytes - 1) / kDevicePieceBytes; }
static_assert(kDeviceCallBytes <= kDeviceCallsUnderWay * kDevicePieceBytes, "one of them may be under way");

}  // namespace

absl::Status StateSync::Send(int root, bool receives) {
  if (!on_device()) return SendOverHost(root, receives);
  std::vector<absl::Span<std::byte>> host_pieces;
  for (const ReplicaState::Run& run : state_.on_host()) {
    host_pieces.push_back(state_.host().bytes().subspan(run.begin, run.bytes));
  }
  LS_RETURN_IF_ERROR(BroadcastHostPieces(root, receives, host_pieces));
  LS_ASSIGN_OR_RETURN(device::Event* const settled, state_.Settled());
  const bool has_place = receives || communicator_.rank() == root;
  for (const ReplicaState::Run& run : state_.on_device()) {
    std::byte* const memory = has_place ? state_.device_memory() + run.begin : nullptr;
    LS_RETURN_IF_ERROR(QueueDeviceRun(root, memory, run.bytes, *settled));
  }
  LS_RETURN_IF_ERROR(WaitForQueued());
  return receives ? state_.Fetch() : absl::OkStatus();
}

absl::Status StateSync::Gather(const SharePlan& plan) {
  LS_CHECK(static_cast<int>(plan.shares.size()) == communicator_.size(), "one share per rank");
  if (!on_device()) return GatherOverHost(plan);
  for (const SharePiece& piece : plan.shares[static_cast<size_t>(communicator_.rank())].pieces) {
    LS_RETURN_IF_ERROR(state_.StoreTensor(piece.tensor));
  }
  LS_ASSIGN_OR_RETURN(device::Event* const settled, state_.Settled());
  for (int root = 0; root < communicator_.size(); ++root) {
    std::vector<absl::Span<std::byte>> host_pieces;
    for (const SharePiece& piece : plan.shares[static_cast<size_t>(root)].pieces) {
      if (std::byte* const memory = state_.address(piece.tensor); memory != nullptr) {
        LS_RETURN_IF_ERROR(QueueDeviceRun(root, memory, piece.bytes, *settled));
      } else {
        host_pieces.push_back(state_.host().tensor(piece.tensor));
      }
    }
    LS_RETURN_IF_ERROR(BroadcastHostPieces(root, /*receives=*/true, host_pieces));
  }
  LS_RETURN_IF_ERROR(WaitForQueued());
  return state_.Fetch();
}

absl::Status StateSync::SendOverHost(int root, bool receives) {
  const absl::Span<std::byte> copy = state_.host().bytes();
  const auto bytes = absl::MakeSpan(reinterpret_cast<char*>(copy.data()), copy.size());
  if (receives || communicator_.rank() == root) return BroadcastBytes(root, bytes);
  std::vector<char> unused(std::min(bytes.size(), kHostPieceBytes));
  for (size_t offset = 0; offset < bytes.size(); offset += unused.size()) {
    LS_RETURN_IF_ERROR(BroadcastBytes(root, absl::MakeSpan(unused).subspan(0, bytes.size() - offset)));
  }
  return absl::OkStatus();
}

absl::Status StateSync::GatherOverHost(const SharePlan& plan) {
  HostState& state = state_.host();
  for (int root = 0; root < communicator_.size(); ++root) {
    const Share& share = plan.shares[static_cast<size_t>(root)];
    // Piece by piece: a copy of the share beside the state would be memory that nobody forecast.
    std::vector<char> bytes(std::min<uint64_t>(share.bytes, kHostPieceBytes));
    for (uint64_t offset = 0; offset < share.bytes; offset += bytes.size()) {
      const auto piece = absl::MakeSpan(bytes).subspan(0, share.bytes - offset);
      if (root == communicator_.rank()) state.ReadShare(share, offset, piece);
      LS_RETURN_IF_ERROR(BroadcastBytes(root, piece));
      state.WriteShare(share, offset, piece);
    }
  }
  return absl::OkStatus();
}

absl::Status StateSync::BroadcastBytes(int root, absl::Span<char> bytes) {
  for (size_t offset = 0; offset < bytes.size(); offset += kHostPieceBytes) {
    const Handle handle = communicator_.Broadcast(tag_, root, bytes.subspan(offset, kHostPieceBytes));
    LS_RETURN_IF_ERROR(WaitFor(*handle, pulse_));
  }
  return absl::OkStatus();
}

absl::Status StateSync::BroadcastHostPieces(int root, bool receives, absl::Span<const absl::Span<std::byte>> pieces) {
  std::vector<char> packed;
  for (const absl::Span<std::byte> piece : pieces) {
    const auto* const begin = reinterpret_cast<const char*>(piece.data());
    packed.insert(packed.end(), begin, begin + piece.size());
  }
  LS_RETURN_IF_ERROR(BroadcastBytes(root, absl::MakeSpan(packed)));
  if (!receives) return absl::OkStatus();
  size_t offset = 0;
  for (const absl::Span<std::byte> piece : pieces) {
    std::memcpy(piece.data(), packed.data() + offset, piece.size());
    offset += piece.size();
  }
  return absl::OkStatus();
}

absl::Status StateSync::QueueDeviceRun(int root, std::byte* memory, size_t bytes, device::Event& settled) {
  for (size_t offset = 0; offset < bytes; offset += kDeviceCallBytes) {
    const size_t piece = std::min(bytes - offset, kDeviceCallBytes);
    // Here, where the pulse shows that a peer is waited for.
    while (calls_under_way_ + CallsOf(piece) > kDeviceCallsUnderWay) LS_RETURN_IF_ERROR(WaitForOldest());
    std::byte* const at = memory == nullptr ? nullptr : memory + offset;
    queued_.emplace_back(communicator_.on_device()->Broadcast(tag_, root, at, piece, settled), piece);
    calls_under_way_ += CallsOf(piece);
  }
  return absl::OkStatus();
}

absl::Status StateSync::WaitForOldest() {
  const auto [handle, bytes] = std::move(queued_.front());
  queued_.pop_front();
  calls_under_way_ -= CallsOf(bytes);
  LS_RETURN_IF_ERROR(WaitFor(*handle, pulse_));
  AdvancePulse(pulse_, bytes);
  return absl::OkStatus();
}

absl::Status StateSync::WaitForQueued() {
  while (!queued_.empty()) LS_RETURN_IF_ERROR(WaitForOldest());
  return absl::OkStatus();
}

}  // namespace lockstep::worker
