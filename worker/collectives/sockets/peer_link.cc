#include "worker/collectives/sockets/peer_link.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr char kCounts = 1;
constexpr char kVoid = 0;
// Frames that go with one system call.
constexpr size_t kMostStarted = 16;
// Taken in before the other peers have their turn.
constexpr size_t kReadBudget = 4 * 1024 * 1024;

iovec Part(const void* begin, size_t bytes) { return {.iov_base = const_cast<void*>(begin), .iov_len = bytes}; }

}  // namespace

PeerLink::PeerLink(int peer, std::unique_ptr<PeerStream> stream, LinkEvents& events)
    : peer_(peer), stream_(std::move(stream)), events_(events) {}

void PeerLink::Send(OutgoingFrame frame) { waiting_[frame.head.sequence].push_back(std::move(frame)); }

void PeerLink::Start() {
  while (started_.size() < kMostStarted && !waiting_.empty()) {
    const auto first = waiting_.begin();
    started_.push_back(std::move(first->second.front()));
    first->second.pop_front();
    if (first->second.empty()) waiting_.erase(first);
  }
}

absl::Status PeerLink::Write() {
  blocked_ = false;
  for (Start(); !started_.empty(); Start()) {
    std::array<iovec, 3 * kMostStarted> parts;
    size_t count = 0, offered = 0;
    size_t skip = sent_;
    const auto add = [&](const void* begin, size_t bytes) {
      const size_t skipped = std::min(skip, bytes);
      skip -= skipped;
      if (skipped == bytes) return;
      parts[count++] = Part(static_cast<const char*>(begin) + skipped, bytes - skipped);
      offered += bytes - skipped;
    };
    for (const OutgoingFrame& frame : started_) {
      const bool given_up = abandoned_ && &frame == &started_.front();
      add(&frame.head, kHeadBytes);
      add(given_up ? zeros_.data() : frame.begin(), frame.head.bytes);
      add(given_up ? &kVoid : &kCounts, kMarkBytes);
    }
    LS_ASSIGN_OR_RETURN(const size_t sent, stream_->Write(absl::MakeConstSpan(parts.data(), count)));
    Account(sent);
    if (sent < offered) {
      blocked_ = true;
      return absl::OkStatus();
    }
  }
  LS_ASSIGN_OR_RETURN(const bool flushed, stream_->Flush());
  blocked_ = !flushed;
  return absl::OkStatus();
}

void PeerLink::Account(size_t sent) {
  bytes_moved_ += sent;
  sent_ += sent;
  while (!started_.empty()) {
    const OutgoingFrame& frame = started_.front();
    const size_t whole = kHeadBytes + frame.head.bytes + kMarkBytes;
    if (sent_ < whole) return;
    sent_ -= whole;
    abandoned_ = false;
    if (frame.unsent != nullptr) --*frame.unsent;
    started_.pop_front();
  }
}

void PeerLink::GiveUp() {
  waiting_.clear();
  if (started_.empty()) return;
  started_.resize(sent_ > 0 ? 1 : 0);
  abandoned_ = sent_ > 0;
  if (!abandoned_) return;
  OutgoingFrame& frame = started_.front();
  frame.unsent = nullptr;
  zeros_.assign(frame.head.bytes, 0);
}

absl::Status PeerLink::Read() {
  has_more_ = false;
  for (size_t budget = kReadBudget; budget > 0;) {
    std::array<iovec, 2> parts;
    size_t count = 0;
    if (!in_body_) {
      parts[count++] = Part(reinterpret_cast<char*>(&head_) + head_have_, kHeadBytes - head_have_);
    } else {
      const size_t bytes = head_.bytes;
      if (body_have_ < bytes) parts[count++] = Part(place_ + body_have_, bytes - body_have_);
      const size_t tail_have = body_have_ > bytes ? body_have_ - bytes : 0;
      parts[count++] = Part(tail_ + tail_have, sizeof(tail_) - tail_have);
    }
    LS_ASSIGN_OR_RETURN(const size_t came, stream_->Read(absl::MakeConstSpan(parts.data(), count)));
    if (came == 0) return absl::OkStatus();
    bytes_moved_ += came;
    budget -= std::min(budget, came);
    if (!in_body_) {
      head_have_ += came;
      if (head_have_ == kHeadBytes) LS_RETURN_IF_ERROR(TakeHead());
    } else {
      body_have_ += came;
      if (body_have_ > head_.bytes) LS_RETURN_IF_ERROR(TakeBody());
    }
  }
  has_more_ = true;
  return absl::OkStatus();
}

absl::Status PeerLink::TakeHead() {
  if (head_.bytes > kMostFrameBytes) return absl::UnavailableError("what it sent is no frame");
  LS_ASSIGN_OR_RETURN(place_, events_.PlaceFor(peer_, head_));
  in_body_ = true;
  body_have_ = 0;
  return absl::OkStatus();
}

absl::Status PeerLink::TakeBody() {
  const FrameHead done = head_;
  const size_t next_have = body_have_ - done.bytes - kMarkBytes;
  std::memcpy(&head_, tail_ + kMarkBytes, next_have);
  head_have_ = next_have;
  in_body_ = false;
  if (tail_[0] == kCounts) LS_RETURN_IF_ERROR(events_.OnReceived(peer_, done, place_));
  return head_have_ == kHeadBytes ? TakeHead() : absl::OkStatus();
}

}  // namespace lockstep::worker
