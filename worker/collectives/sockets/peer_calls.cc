#include "worker/collectives/sockets/peer_calls.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/sockets/link_closing.h"

namespace lockstep::worker {
namespace {

// A call that sends a peer no more than this is sent before the peer is in it, up to so many calls.
constexpr size_t kEagerBytes = 32 * 1024;
constexpr size_t kEagerCalls = 8;
// What a peer may have said of calls that this rank is not in yet.
constexpr size_t kMostSaid = 64 * 1024;
// How long a rank that aborts waits for its notes to leave before it closes the connections.
constexpr absl::Duration kNoteLimit = absl::Milliseconds(5);
constexpr uint64_t kWake = ~uint64_t{0};

// A connection's failure, as this layer tells it.
absl::Status Lost(int peer, const absl::Status& why) {
  if (absl::IsAborted(why)) return why;  // it is known already
  return Blame(absl::AbortedError(absl::StrCat("lost the connection to rank ", peer, ": ", why.message())), peer);
}

int Poll(int epoll, absl::Span<epoll_event> events, absl::Duration wait) {
  // Rounded up: whoever waits for a time wakes after it.
  const int64_t ms = wait <= absl::ZeroDuration() ? 0 : absl::ToInt64Milliseconds(wait) + 1;
  return epoll_wait(epoll, events.data(), static_cast<int>(events.size()),
                    static_cast<int>(std::min<int64_t>(ms, 1 << 30)));
}

}  // namespace

PeerCalls::Peer::Peer() : early(kEagerBytes * kEagerCalls) {}

PeerCalls::PeerCalls(SocketGroup group, std::vector<std::unique_ptr<PeerStream>> streams,
                     std::unique_ptr<HostMemory> memory)
    : group_(std::move(group)),
      memory_(std::move(memory)),
      silence_(group_.ask_every, group_.answer_limit),
      peers_(static_cast<size_t>(group_.size)) {
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    if (streams[rank] == nullptr) continue;
    peers_[rank].link = std::make_unique<PeerLink>(static_cast<int>(rank), std::move(streams[rank]), *this);
    links_.push_back(&peers_[rank]);
  }
}

absl::Status PeerCalls::Open() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.is_open() || !wake_.is_open()) return SystemError("cannot wait for peers");
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWake}};
  bool added = epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) == 0;
  const absl::Time now = SteadyNow();
  for (const Peer* peer : links_) {
    event = {.events = EPOLLIN, .data = {.u64 = static_cast<uint64_t>(peer->link->peer())}};
    added = added && epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, peer->link->fd(), &event) == 0;
    silence_.Heard(peer->link->peer(), now);
  }
  return added ? absl::OkStatus() : SystemError("cannot wait for peers");
}

void PeerCalls::Interrupt() {
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof(one));
}

absl::Status PeerCalls::Begin(Call call) {
  const uint64_t sequence = call.sequence;
  const CallWords words = CallWords::Of(call);
  last_begun_ = sequence;
  for (Peer* peer : links_) {
    peer->link->Send({.head = {.kind = FrameKind::kCall, .bytes = sizeof(words), .sequence = sequence},
                      .owned = std::string(reinterpret_cast<const char*>(&words), sizeof(words))});
  }
  auto exchange = std::make_unique<Exchange>(
      std::move(call), group_.rank, size(), group_.piece_elements,
      [this](int peer, OutgoingFrame frame) { peers_[peer].link->Send(std::move(frame)); }, memory_.get());
  Exchange& begun = *(active_[sequence] = std::move(exchange));
  const bool eager = begun.MostBytesToAPeer() <= kEagerBytes;
  for (Peer* peer : links_) {
    const auto known = peer->is_in.find(sequence);
    if (known != peer->is_in.end()) LS_RETURN_IF_ERROR(Compare(*peer, sequence, known->second));
    const bool ahead = known == peer->is_in.end() && eager && peer->sent_ahead.size() < kEagerCalls;
    if (ahead) peer->sent_ahead.insert(sequence);
    const int rank = peer->link->peer();
    if (ahead || known != peer->is_in.end()) begun.Release(rank);
    for (const EarlyFrame& frame : peer->early.Take(sequence)) {
      const absl::Status taken = begun.TakeWaited(rank, frame.head, frame.bytes);
      if (!taken.ok()) return Lost(rank, taken);
    }
  }
  return absl::OkStatus();
}

absl::Status PeerCalls::Compare(const Peer& peer, uint64_t sequence, const CallWords& words) {
  const CallWords own = CallWords::Of(active_.at(sequence)->call());
  if (own == words) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("rank ", peer.link->peer(), " is in ", words.Name(), ", this rank in ",
                                         own.Name(), " at the same place"));
}

absl::Status PeerCalls::WriteTo(Peer& peer) {
  if (const absl::Status written = peer.link->Write(); !written.ok()) {
    // What it said before it went is worth more than that it went.
    const absl::Status read = peer.link->Read();
    return Lost(peer.link->peer(), absl::IsAborted(read) ? read : written);
  }
  if (peer.link->blocked() == peer.wants_write) return absl::OkStatus();
  peer.wants_write = peer.link->blocked();
  epoll_event event = {.events = EPOLLIN | (peer.wants_write ? uint32_t{EPOLLOUT} : 0u),
                       .data = {.u64 = static_cast<uint64_t>(peer.link->peer())}};
  return epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, peer.link->fd(), &event) == 0 ? absl::OkStatus()
                                                                              : SystemError("cannot wait for a peer");
}

absl::Status PeerCalls::Send() {
  absl::Status status;
  for (size_t i = 0; status.ok() && i < links_.size(); ++i) status = WriteTo(*links_[i]);
  EndDone();  // also what was complete before a failure
  return status;
}

void PeerCalls::EndDone() {
  uint64_t moved = shared_bytes_;
  for (const auto& [sequence, exchange] : active_) moved += exchange->shared_bytes();
  for (const Peer* peer : links_) moved += peer->link->bytes_moved();
  bytes_moved_.store(moved, std::memory_order_relaxed);
  for (auto it = active_.begin(); it != active_.end() && it->second->Done();) {
    for (Peer* peer : links_) peer->is_in.erase(it->first);
    const std::shared_ptr<Completion> completion = it->second->call().completion;
    shared_bytes_ += it->second->shared_bytes();
    it = active_.erase(it);
    completion->End(absl::OkStatus());
  }
}

absl::StatusOr<bool> PeerCalls::Receive(absl::Duration wait) {
  absl::StatusOr<bool> came = ReceiveWaiting();
  // What was read may have something to be sent: then nothing is waited for.
  if (came.ok() && !*came) came = AwaitAndReceive(wait);
  const absl::Status sent = Send();  // after a failure it still ends what was complete before
  if (came.ok()) LS_RETURN_IF_ERROR(sent);
  return came;
}

absl::StatusOr<bool> PeerCalls::AwaitAndReceive(absl::Duration wait) {
  const absl::Time next = silence_.NextLook();
  wait = std::min(wait, next - SteadyNow());
  epoll_event events[64];
  int count = 0;
  if (active_.empty() || wait <= absl::ZeroDuration()) {
    count = Poll(epoll_.get(), absl::MakeSpan(events), wait);
  } else {
    const Exchange& first = *active_.begin()->second;
    const NowDoing running(first.call().Name(), " with ", size() - 1, " peers");
    const int awaited = first.Awaited();
    const char* const verb = awaited < 0 ? "sending to " : first.Gathers() ? "gathering from " : "receiving from ";
    const NowDoing waiting(verb, awaited < 0 ? std::string("peers") : group_.names[static_cast<size_t>(awaited)]);
    count = Poll(epoll_.get(), absl::MakeSpan(events), wait);
  }
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 == kWake) {
      uint64_t times = 0;
      (void)!read(wake_.get(), &times, sizeof(times));
    } else if ((events[i].events & ~uint32_t{EPOLLOUT}) != 0) {
      LS_RETURN_IF_ERROR(ReadFrom(static_cast<int>(events[i].data.u64)));
    }
  }
  LS_RETURN_IF_ERROR(AskWhoIsSilent(next));
  return count > 0;
}

// Reads what connections hold already, for which poll may not report them.
absl::StatusOr<bool> PeerCalls::ReceiveWaiting() {
  bool read = false;
  for (const Peer* peer : links_) {
    if (!peer->link->has_more()) continue;
    LS_RETURN_IF_ERROR(ReadFrom(peer->link->peer()));
    read = true;
  }
  return read;
}

absl::Status PeerCalls::ReadFrom(int rank) {
  const absl::Status status = peers_[static_cast<size_t>(rank)].link->Read();
  silence_.Heard(rank, SteadyNow());
  return status.ok() ? status : Lost(rank, status);
}

absl::Status PeerCalls::AskWhoIsSilent(absl::Time meant) {
  const SilenceWatch::Findings found = silence_.Look(SteadyNow(), meant);
  if (found.silent >= 0) {
    return Blame(absl::AbortedError(absl::StrCat(
                     "rank ", found.silent, " cannot be reached: its connection stands, but it has not answered for ",
                     absl::FormatDuration(group_.answer_limit))),
                 found.silent);
  }
  for (const int rank : found.to_ask) SendMark(rank, FrameKind::kAsk);
  return absl::OkStatus();
}

absl::StatusOr<char*> PeerCalls::PlaceFor(int rank, const FrameHead& head) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  peer.early.DropUnfinished();
  const auto of_its_own = [&](size_t most) -> absl::StatusOr<char*> {
    if (head.bytes > most) return absl::UnavailableError("what it sent is no frame");
    peer.small.resize(head.bytes);
    return peer.small.data();
  };
  switch (head.kind) {
    case FrameKind::kCall:
      return of_its_own(sizeof(CallWords));
    case FrameKind::kNote:
      return of_its_own(kMostNoteBytes);
    case FrameKind::kAsk:
    case FrameKind::kAnswer:
    case FrameKind::kRead:
      return of_its_own(0);
    case FrameKind::kReduce:
    case FrameKind::kGather:
    case FrameKind::kReduceAt:
    case FrameKind::kGatherAt:
      break;
    default:
      return absl::UnavailableError("what it sent is no frame");
  }
  if (const auto active = active_.find(head.sequence); active != active_.end()) {
    return active->second->PlaceFor(rank, head, peer.scratch);
  }
  if (head.sequence <= last_begun_) return absl::UnavailableError("it sent a piece of a call that is done");
  return peer.early.PlaceFor(head);
}

absl::Status PeerCalls::OnReceived(int rank, const FrameHead& head, char* place) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  switch (head.kind) {
    case FrameKind::kCall:
      return SaidToBeIn(peer, head, place);
    case FrameKind::kNote:
      return absl::AbortedError(absl::StrCat("rank ", rank, " aborted: ", absl::string_view(place, head.bytes)));
    case FrameKind::kAsk:
      SendMark(rank, FrameKind::kAnswer);
      return absl::OkStatus();
    case FrameKind::kAnswer:
      return absl::OkStatus();
    case FrameKind::kReduce:
    case FrameKind::kGather:
    case FrameKind::kReduceAt:
    case FrameKind::kGatherAt:
    case FrameKind::kRead:
      break;
  }
  const auto active = active_.find(head.sequence);
  if (head.kind == FrameKind::kRead) {
    if (active == active_.end()) return absl::UnavailableError("it read pieces of a call that is not under way");
    return active->second->OnRead(rank);
  }
  std::optional<EarlyFrame> early = peer.early.Finish();
  if (!early.has_value()) {
    return active == active_.end() ? absl::OkStatus() : active->second->OnReceived(rank, head, place);
  }
  // Its call may have been begun, and even have ended, since the frame began to come.
  if (active != active_.end()) return active->second->TakeWaited(rank, early->head, early->bytes);
  if (head.sequence > last_begun_) peer.early.Keep(*std::move(early));
  return absl::OkStatus();
}

absl::Status PeerCalls::SaidToBeIn(Peer& peer, const FrameHead& head, const char* place) {
  CallWords words;
  if (head.bytes != sizeof(words)) return absl::UnavailableError("what it sent is no frame");
  std::memcpy(&words, place, sizeof(words));
  peer.sent_ahead.erase(head.sequence);
  const auto active = active_.find(head.sequence);
  if (active == active_.end() && head.sequence <= last_begun_) return absl::OkStatus();  // done here
  if (peer.is_in.size() >= kMostSaid) return absl::UnavailableError("it is in too many calls");
  peer.is_in[head.sequence] = words;
  if (active == active_.end()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(Compare(peer, head.sequence, words));
  active->second->Release(peer.link->peer());
  return absl::OkStatus();
}

void PeerCalls::Close(const absl::Status& cause) {
  for (Peer* peer : links_) peer->link->GiveUp();
  // Before callers overwrite what peers may be reading.
  if (memory_ != nullptr) memory_->Revoke();
  for (const auto& [sequence, exchange] : active_) exchange->call().completion->End(cause);
  active_.clear();

  std::vector<PeerLink*> links;
  for (const Peer* peer : links_) links.push_back(peer->link.get());
  TellAndShutDown(links, cause.message(), kNoteLimit);
  for (Peer* peer : links_) peer->link.reset();
  links_.clear();
}

}  // namespace lockstep::worker
