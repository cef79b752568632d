#include "worker/collectives/sockets/exchange.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "common/status/status_macros.h"
#include "worker/arithmetic/bucketer.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/collectives/sockets/rank_order_sum.h"

namespace lockstep::worker {
namespace {

// Up to here one hop with more bytes beats two hops with fewer.
constexpr size_t kSmallBytes = 32 * 1024;
constexpr int64_t kBroadcastPieceBytes = 512 * 1024;
// Where nothing is computed meanwhile, pieces are larger.
constexpr int64_t kGatherFactor = 8;

// Small sums are sent: that needs no answer.
bool IsShared(const Call& call) {
  return call.kind == CallKind::kAllReduceExact && call.floats.size() * sizeof(float) > kSmallBytes;
}

bool IsReduced(FrameKind kind) { return kind == FrameKind::kReduce || kind == FrameKind::kReduceAt; }
bool IsAt(FrameKind kind) { return kind == FrameKind::kReduceAt || kind == FrameKind::kGatherAt; }

absl::Status BelongsNowhere() { return absl::UnavailableError("it sent a piece that this call does not have"); }

}  // namespace

Exchange::Exchange(Call call, int rank, int size, int64_t most_elements, SendFrame send, const HostMemory* memory)
    : call_(std::move(call)),
      rank_(rank),
      size_(size),
      most_elements_(most_elements),
      send_(std::move(send)),
      memory_(IsShared(call_) ? memory : nullptr),
      expected_(static_cast<size_t>(size)),
      told_(static_cast<size_t>(size)),
      held_(static_cast<size_t>(size)),
      released_(static_cast<size_t>(size)) {
  SetUp();
  SendFirst();
}

void Exchange::Cut(const std::vector<int64_t>& sizes, int64_t most_elements) {
  int64_t offset = 0;
  for (const int64_t size : sizes) {
    blocks_.push_back({offset, size, most_elements, (size + most_elements - 1) / most_elements});
    offset += size;
  }
}

void Exchange::SetUp() {
  switch (call_.kind) {
    case CallKind::kAllGather:
      Cut(call_.blocks, most_elements_ * kGatherFactor);
      gather_bytes_ = 1;
      gathered_ = call_.bytes.data();
      break;
    case CallKind::kAllReduceExact:
      Cut(BlockSizes(static_cast<int64_t>(call_.floats.size()), size_), most_elements_);
      reduce_bytes_ = call_.addends.element_bytes();
      gather_bytes_ = sizeof(float);
      addends_ = call_.addends.bytes();
      gathered_ = reinterpret_cast<char*>(call_.floats.data());
      break;
    case CallKind::kAllReduceSumInt64:
    case CallKind::kAllReduceSumFloat: {
      const bool integers = call_.kind == CallKind::kAllReduceSumInt64;
      const size_t element = integers ? sizeof(int64_t) : sizeof(float);
      const size_t n = integers ? call_.integers.size() : call_.floats.size();
      char* const values =
          integers ? reinterpret_cast<char*>(call_.integers.data()) : reinterpret_cast<char*>(call_.floats.data());
      gather_bytes_ = element;
      gathered_ = values;
      small_ = n * element <= kSmallBytes;
      if (small_) {
        Cut(std::vector<int64_t>(static_cast<size_t>(size_), static_cast<int64_t>(n)), most_elements_);
        all_.resize((n * element * static_cast<size_t>(size_) + sizeof(int64_t) - 1) / sizeof(int64_t));
        gathered_ = reinterpret_cast<char*>(all_.data());
        if (n > 0) std::memcpy(gathered_ + static_cast<size_t>(rank_) * n * element, values, n * element);
      } else {
        Cut(BlockSizes(static_cast<int64_t>(n), size_), most_elements_);
        reduce_bytes_ = element;
        addends_ = values;
      }
      break;
    }
    case CallKind::kBroadcast:
      return SetUpBroadcast();
  }
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    Expected& expected = expected_[static_cast<size_t>(peer)];
    if (reduce_bytes_ > 0) expected.reduce = own().pieces;
    if (gather_bytes_ > 0) expected.gather = blocks_[static_cast<size_t>(peer)].pieces;
    left_ += expected.reduce + expected.gather;
  }
  if (reduce_bytes_ == 0) return;
  came_.resize(static_cast<size_t>(own().pieces));
  if (call_.kind == CallKind::kAllReduceSumFloat) floats_.resize(static_cast<size_t>(own().size * size_));
  if (call_.kind == CallKind::kAllReduceExact && size_ > 2) sums_.resize(static_cast<size_t>(own().size));
}

void Exchange::SetUpBroadcast() {
  blocks_.assign(static_cast<size_t>(size_), {});
  const auto bytes = static_cast<int64_t>(call_.bytes.size());
  const int64_t pieces = (bytes + kBroadcastPieceBytes - 1) / kBroadcastPieceBytes;
  // The block belongs to whom it comes from: the root, or the rank before this one in the chain.
  const int position = (rank_ - call_.root + size_) % size_;
  const int previous = (rank_ + size_ - 1) % size_;
  const int source = position == 0 ? rank_ : previous;
  blocks_[static_cast<size_t>(source)] = {0, bytes, kBroadcastPieceBytes, pieces};
  gather_bytes_ = 1;
  gathered_ = call_.bytes.data();
  if (position + 1 < size_) forwards_to_ = (rank_ + 1) % size_;
  if (position > 0) {
    expected_[static_cast<size_t>(previous)].gather = pieces;
    left_ = pieces;
  }
}

void Exchange::SendFirst() {
  if (call_.kind == CallKind::kBroadcast) {
    for (int64_t piece = 0; forwards_to_ >= 0 && piece < own().pieces; ++piece) {
      SendPiece(forwards_to_, FrameKind::kGather, own(), piece, gathered_, gather_bytes_);
    }
    return;
  }
  if (reduce_bytes_ == 0) {
    for (int64_t piece = 0; piece < own().pieces; ++piece) SendGathered(piece);
    if (small_ && left_ == 0) SumSmall();
    return;
  }
  // In staggered order, so that not everybody begins with rank 0.
  for (int k = 1; k < size_; ++k) {
    const int peer = (rank_ + k) % size_;
    const Block& block = blocks_[static_cast<size_t>(peer)];
    for (int64_t piece = 0; piece < block.pieces; ++piece) {
      SendPiece(peer, FrameKind::kReduce, block, piece, addends_, reduce_bytes_);
    }
  }
}

void Exchange::SendPiece(int peer, FrameKind kind, const Block& block, int64_t piece, const char* base,
                         size_t element_bytes) {
  const Piece range = block.piece(piece);
  OutgoingFrame frame;
  frame.head = {.kind = kind,
                .bytes = static_cast<uint32_t>(static_cast<size_t>(range.size) * element_bytes),
                .sequence = call_.sequence,
                .offset = static_cast<uint64_t>(range.begin)};
  const char* const bytes = base + static_cast<size_t>(block.offset + range.begin) * element_bytes;
  const auto at = static_cast<size_t>(peer);
  if (const std::optional<SharedRange> shared = RangeFor(peer, bytes, frame.head.bytes); shared.has_value()) {
    frame.head.kind = kind == FrameKind::kReduce ? FrameKind::kReduceAt : FrameKind::kGatherAt;
    shared_bytes_ += frame.head.bytes;
    frame.head.bytes = sizeof(*shared);
    frame.owned.assign(reinterpret_cast<const char*>(&*shared), sizeof(*shared));
    if (std::exchange(told_[at], 1) == 0) ++unread_;
  } else {
    frame.bytes = bytes;
  }
  frame.unsent = &unsent_;
  ++unsent_;
  if (released_[at] != 0) return send_(peer, std::move(frame));
  held_[at].push_back(std::move(frame));
}

void Exchange::SendGathered(int64_t piece) {
  for (int k = 1; k < size_; ++k) {
    SendPiece((rank_ + k) % size_, FrameKind::kGather, own(), piece, gathered_, gather_bytes_);
  }
}

size_t Exchange::MostBytesToAPeer() const {
  // What it will pass on of what comes.
  if (call_.kind == CallKind::kBroadcast) return forwards_to_ < 0 ? 0 : call_.bytes.size();
  const size_t result = reduce_bytes_ > 0 ? static_cast<size_t>(own().size) * gather_bytes_ : 0;
  size_t most = 0;
  for (int peer = 0; peer < size_; ++peer) {
    if (peer == rank_) continue;
    size_t bytes = 0;
    for (const OutgoingFrame& frame : held_[static_cast<size_t>(peer)]) bytes += frame.head.bytes;
    const char* const own_result = gathered_ + static_cast<size_t>(own().offset) * gather_bytes_;
    const bool reads = result > 0 && RangeFor(peer, own_result, result).has_value();
    most = std::max(most, bytes + (reads ? static_cast<size_t>(own().pieces) * sizeof(SharedRange) : result));
  }
  return most;
}

std::optional<SharedRange> Exchange::RangeFor(int peer, const char* begin, size_t bytes) const {
  return memory_ == nullptr ? std::nullopt : memory_->RangeFor(peer, begin, bytes);
}

void Exchange::Release(int peer) {
  const auto at = static_cast<size_t>(peer);
  if (std::exchange(released_[at], 1) != 0) return;
  for (OutgoingFrame& frame : held_[at]) send_(peer, std::move(frame));
  held_[at].clear();
}

absl::StatusOr<char*> Exchange::PlaceFor(int peer, const FrameHead& head, std::vector<char>& scratch) {
  const auto at = static_cast<size_t>(peer);
  Expected& expected = expected_[at];
  const bool reduces = IsReduced(head.kind);
  int64_t& next = reduces ? expected.next_reduce : expected.next_gather;
  if (next == (reduces ? expected.reduce : expected.gather)) return BelongsNowhere();
  const Block& block = reduces ? own() : blocks_[at];
  const Piece piece = block.piece(next);
  const bool fits = IsAt(head.kind) ? memory_ != nullptr && head.bytes == sizeof(SharedRange)
                                    : Fits(head.kind, piece.size, head.bytes);
  if (head.offset != static_cast<uint64_t>(piece.begin) || !fits) return BelongsNowhere();
  ++next;
  if (!reduces && !IsAt(head.kind)) return gathered_ + static_cast<size_t>(block.offset + piece.begin) * gather_bytes_;
  if (!floats_.empty()) return reinterpret_cast<char*>(floats_.data() + peer * own().size + piece.begin);
  if (scratch.size() < head.bytes) scratch.resize(head.bytes);
  return scratch.data();
}

bool Exchange::Fits(FrameKind kind, int64_t elements, size_t bytes) const {
  const auto n = static_cast<size_t>(elements);
  if (!IsReduced(kind)) return bytes == n * gather_bytes_;
  if (call_.kind != CallKind::kAllReduceExact) return bytes == n * reduce_bytes_;
  return bytes == n * sizeof(int64_t) || bytes == n * sizeof(float);
}

absl::Status Exchange::OnReceived(int peer, const FrameHead& head, char* place) {
  if (IsAt(head.kind)) return ReadShared(peer, head, place);
  --left_;
  TellRead(peer);
  if (head.kind == FrameKind::kReduce) {
    const int64_t piece = static_cast<int64_t>(head.offset) / own().piece_size;
    AddPiece(piece, head.bytes, place);
    CountPiece(piece);
    return absl::OkStatus();
  }
  if (call_.kind == CallKind::kBroadcast && forwards_to_ >= 0) {
    const Block& block = blocks_[static_cast<size_t>(peer)];
    SendPiece(forwards_to_, FrameKind::kGather, block, static_cast<int64_t>(head.offset) / block.piece_size, gathered_,
              gather_bytes_);
  }
  if (small_ && left_ == 0) SumSmall();
  return absl::OkStatus();
}

absl::Status Exchange::ReadShared(int peer, const FrameHead& head, const char* place) {
  SharedRange range;
  std::memcpy(&range, place, sizeof(range));
  const bool reduces = head.kind == FrameKind::kReduceAt;
  const Block& block = reduces ? own() : blocks_[static_cast<size_t>(peer)];
  const int64_t number = static_cast<int64_t>(head.offset) / block.piece_size;
  const Piece piece = block.piece(number);
  const bool fits = Fits(head.kind, piece.size, range.bytes);
  const char* const bytes = memory_->BytesOf(peer, range);
  // Integers or float32 values.
  const auto element = range.bytes / static_cast<uint64_t>(piece.size);
  if (!fits || bytes == nullptr || reinterpret_cast<uintptr_t>(bytes) % element != 0) {
    return absl::UnavailableError("it named memory that it does not share");
  }
  if (reduces) {
    AddPiece(number, range.bytes, bytes);
  } else {
    std::memcpy(gathered_ + static_cast<size_t>(block.offset + piece.begin) * gather_bytes_, bytes, range.bytes);
  }
  // It may have given up the call and overwritten the piece. Then the piece never counts, and its note ends the call.
  if (!memory_->Holds(peer)) return absl::OkStatus();
  --left_;
  shared_bytes_ += range.bytes;
  expected_[static_cast<size_t>(peer)].read_here = true;
  TellRead(peer);
  if (reduces) CountPiece(number);
  return absl::OkStatus();
}

void Exchange::TellRead(int peer) {
  Expected& expected = expected_[static_cast<size_t>(peer)];
  if (!expected.complete() || !std::exchange(expected.read_here, false)) return;
  send_(peer, {.head = {.kind = FrameKind::kRead, .sequence = call_.sequence}});
}

absl::Status Exchange::OnRead(int peer) {
  if (std::exchange(told_[static_cast<size_t>(peer)], 0) == 0) return BelongsNowhere();
  --unread_;
  return absl::OkStatus();
}

absl::Status Exchange::TakeWaited(int peer, const FrameHead& head, absl::Span<const char> bytes) {
  std::vector<char> scratch;
  LS_ASSIGN_OR_RETURN(char* const place, PlaceFor(peer, head, scratch));
  std::copy(bytes.begin(), bytes.end(), place);
  return OnReceived(peer, head, place);
}

void Exchange::AddPiece(int64_t piece, size_t bytes, const char* place) {
  const Piece range = own().piece(piece);
  const auto n = static_cast<size_t>(range.size);
  const int before = came_[static_cast<size_t>(piece)];
  const bool last = before + 1 == size_ - 1;
  const absl::Span<const int64_t> integers(reinterpret_cast<const int64_t*>(place), n);
  switch (call_.kind) {
    case CallKind::kAllReduceExact: {
      ExactAddends came = {.integers = integers};
      if (bytes == n * sizeof(float)) came = {.values = absl::MakeSpan(reinterpret_cast<const float*>(place), n)};
      if (last) {
        SumExactPiece(range, came);
        break;
      }
      ForEachRunIn(call_.runs, own().offset + range.begin, own().offset + range.begin + range.size,
                   [&](const ExactRun& run) {
                     const auto size = static_cast<size_t>(run.size);
                     const auto at = static_cast<size_t>(run.begin - own().offset);
                     AddExactly(came.subspan(at - static_cast<size_t>(range.begin), size), run.exponent, before == 0,
                                absl::MakeSpan(sums_).subspan(at, size));
                   });
      break;
    }
    case CallKind::kAllReduceSumInt64:
      AddInto(integers, call_.integers.subspan(static_cast<size_t>(own().offset + range.begin), n));
      break;
    case CallKind::kAllReduceSumFloat:
      if (last) SumFloatPiece(range);
      break;
    case CallKind::kAllGather:
    case CallKind::kBroadcast:
      break;  // nothing is reduced
  }
}

void Exchange::CountPiece(int64_t piece) {
  if (++came_[static_cast<size_t>(piece)] == size_ - 1) SendGathered(piece);
}

void Exchange::SumExactPiece(const Piece& piece, const ExactAddends& last) {
  const int64_t begin = own().offset + piece.begin;
  ForEachRunIn(call_.runs, begin, begin + piece.size, [&](const ExactRun& run) {
    const auto at = static_cast<size_t>(run.begin), size = static_cast<size_t>(run.size);
    absl::InlinedVector<ExactAddends, 3> all = {last.subspan(static_cast<size_t>(run.begin - begin), size),
                                                call_.addends.subspan(at, size)};
    if (!sums_.empty()) {
      const auto before = absl::MakeConstSpan(sums_).subspan(static_cast<size_t>(run.begin - own().offset), size);
      all.push_back({.integers = before});
    }
    SumExactly(all, run.exponent, call_.floats.subspan(at, size));
  });
}

void Exchange::SumFloatPiece(const Piece& piece) {
  std::vector<const float*> sources;
  float* const values = call_.floats.data() + own().offset + piece.begin;
  for (int r = 0; r < size_; ++r) {
    sources.push_back(r == rank_ ? values : floats_.data() + r * own().size + piece.begin);
  }
  SumInRankOrder(sources, piece.size, values);
}

void Exchange::SumSmall() {
  const auto sum = [&](auto* values, size_t n) {
    const auto* const all = reinterpret_cast<const std::remove_reference_t<decltype(*values)>*>(all_.data());
    for (size_t i = 0; i < n; ++i) {
      auto total = all[i];
      for (size_t r = 1; r < static_cast<size_t>(size_); ++r) total += all[r * n + i];
      values[i] = total;
    }
  };
  if (call_.kind == CallKind::kAllReduceSumInt64) sum(call_.integers.data(), call_.integers.size());
  if (call_.kind == CallKind::kAllReduceSumFloat) sum(call_.floats.data(), call_.floats.size());
}

int Exchange::Awaited() const {
  for (int peer = 0; peer < size_; ++peer) {
    const Expected& expected = expected_[static_cast<size_t>(peer)];
    if (expected.next_reduce < expected.reduce) return peer;
  }
  for (int peer = 0; peer < size_; ++peer) {
    const Expected& expected = expected_[static_cast<size_t>(peer)];
    if (expected.next_gather < expected.gather) return peer;
  }
  return -1;
}

bool Exchange::Gathers() const {
  return std::all_of(expected_.begin(), expected_.end(), [](const Expected& e) { return e.next_reduce == e.reduce; });
}

}  // namespace lockstep::worker
