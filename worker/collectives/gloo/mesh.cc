#include "worker/collectives/gloo/mesh.h"

#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <gloo/transport/tcp/device.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <exception>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/gloo/loop_ticker.h"

namespace lockstep::worker {
namespace {

// Gloo's own limits are kept out of the way: ours end a wait, or a connection, before.
constexpr std::chrono::milliseconds kGlooLimit = std::chrono::hours(1);
constexpr absl::Duration kForever = absl::Hours(24 * 365 * 10);

std::chrono::milliseconds ToMilliseconds(absl::Duration limit) {
  return std::chrono::milliseconds(absl::ToInt64Milliseconds(std::clamp(limit, absl::Milliseconds(1), kForever)));
}

// A peer that is gone must be an error of write(2), not the end of this process.
void IgnoreBrokenPipeSignal() {
  struct sigaction action = {};
  if (sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_DFL) {
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, nullptr);
  }
}

}  // namespace

// Opens Gloo's context up: connected pair by pair, through our store.
class Mesh::PairContext final : public gloo::Context {
 public:
  PairContext(int rank, int size) : gloo::Context(rank, size) { setTimeout(kGlooLimit); }

  // Throws what Gloo throws.
  void Open(const std::string& host) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = host;
    device_ = gloo::transport::tcp::CreateDevice(attributes);
    ticker_ = std::make_unique<LoopTicker>(device_);
    transportContext_ = device_->createContext(rank, size);
    transportContext_->setTimeout(kGlooLimit);
    for (int peer = 0; peer < size; ++peer) {
      if (peer != rank) transportContext_->createPair(peer);
    }
  }

  // Waits for the loop's thread, which may be in the ticker's handler.
  ~PairContext() override {
    if (ticker_ == nullptr) return;
    ticker_->Start();
    transportContext_.reset();
    device_.reset();
  }

  // REQUIRES: Open returned.
  LoopTicker& ticker() { return *ticker_; }

 private:
  std::unique_ptr<LoopTicker> ticker_;
};

Mesh::Mesh(std::unique_ptr<PairContext> context, std::vector<std::string> names)
    : rank_(context->rank), size_(context->size), context_(std::move(context)), names_(std::move(names)) {
  names_.resize(static_cast<size_t>(size_));
  for (int rank = 0; rank < size_; ++rank) {
    std::string& name = names_[static_cast<size_t>(rank)];
    if (name.empty()) name = absl::StrCat("rank ", rank);
  }
}
Mesh::~Mesh() = default;

absl::StatusOr<std::unique_ptr<Mesh>> Mesh::Open(const std::string& host, int rank, int size,
                                                 std::vector<std::string> names) {
  IgnoreBrokenPipeSignal();
  try {
    auto context = std::make_unique<PairContext>(rank, size);
    context->Open(host);
    return std::unique_ptr<Mesh>(new Mesh(std::move(context), std::move(names)));
  } catch (const std::exception& error) {
    return Blame(absl::UnavailableError(absl::StrCat("cannot listen for peers on '", host, "': ", error.what(),
                                                     ". Is it an address of this machine?")),
                 rank);
  }
}

// One address per peer, since every pair listens on a port of its own: what stands under a rank's key is these in
// rank order, all of one length.
absl::Status Mesh::Connect(RendezvousStore& store, const std::string& prefix, absl::Duration limit) {
  const absl::Time until = SteadyNow() + limit;
  std::string own;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const std::vector<char> address = context_->getPair(peer)->address().bytes();
    own.append(address.begin(), address.end());
  }
  LS_RETURN_IF_ERROR(store.Set(absl::StrCat(prefix, rank()), own));
  std::vector<std::string> addresses(static_cast<size_t>(size()));
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    const NowDoing waiting("waiting for the address of ", NameOf(peer));
    absl::StatusOr<std::string> address = store.Get(absl::StrCat(prefix, peer), until - SteadyNow());
    if (absl::IsDeadlineExceeded(address.status())) return Blame(address.status(), peer);
    LS_ASSIGN_OR_RETURN(addresses[static_cast<size_t>(peer)], std::move(address));
  }

  // Each connection costs Gloo a turn of its event loop: all at once.
  const Ticking ticking(context_->ticker());
  Mutex mutex;
  CondVar ended;
  std::set<int> open;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer != rank()) open.insert(peer);
  }
  absl::Status first;
  std::vector<std::thread> threads;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    threads.emplace_back([&, peer] {
      const absl::Status status = ConnectPeer(peer, addresses[static_cast<size_t>(peer)]);
      MutexLock lock(&mutex);
      if (first.ok()) first = status;
      open.erase(peer);
      ended.SignalAll();
    });
  }
  bool in_time = true;
  {
    MutexLock lock(&mutex);
    // Break does not signal: it is looked for often enough.
    while (!open.empty() && first.ok() && in_time && status().ok()) {
      ended.WaitWithTimeout(&mutex, absl::Milliseconds(2));
      in_time = SteadyNow() < until;
    }
  }
  absl::Status late;
  if (!in_time) {
    MutexLock lock(&mutex);
    late = absl::DeadlineExceededError(
        absl::StrCat("not every peer connected within ", absl::FormatDuration(limit), " of forming"));
    if (!open.empty()) late = Blame(late, *open.begin());
    Break(late);
  }
  bool failed = !status().ok();
  {
    MutexLock lock(&mutex);
    if (!first.ok()) failed = true;
  }
  if (failed) Close();
  for (std::thread& thread : threads) thread.join();
  LS_RETURN_IF_ERROR(late);
  LS_RETURN_IF_ERROR(status());
  return first;
}

absl::Status Mesh::ConnectPeer(int peer, const std::string& addresses) {
  const size_t each = addresses.size() / static_cast<size_t>(size() - 1);
  const size_t index = static_cast<size_t>(rank() < peer ? rank() : rank() - 1);
  if (each == 0 || each * static_cast<size_t>(size() - 1) != addresses.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("rank ", peer, " left ", addresses.size(), " bytes of addresses for ", size() - 1, " peers"));
  }
  try {
    const char* begin = addresses.data() + index * each;
    context_->getPair(peer)->connect(std::vector<char>(begin, begin + each));
    return absl::OkStatus();
  } catch (const std::exception& error) {
    return Blame(absl::UnavailableError(absl::StrCat("cannot connect to rank ", peer, ": ", error.what())), peer);
  }
}

bool Mesh::Break(const absl::Status& cause) {
  MutexLock lock(&mutex_);
  if (!status_.ok()) return false;
  status_ = AsAborted(cause);
  for (const auto& [buffer, direction] : awaited_) {
    if (direction == Direction::kReceive) {
      buffer->abortWaitRecv();
    } else {
      buffer->abortWaitSend();
    }
  }
  return true;
}

absl::Status Mesh::status() const {
  MutexLock lock(&mutex_);
  return status_;
}

absl::Status Mesh::BreakFor(int peer, const std::string& what) {
  Break(Blame(absl::AbortedError(absl::StrCat("rank ", peer, " ", what)), peer));
  return status();
}

absl::StatusOr<int> Mesh::AwaitAnyone(gloo::transport::UnboundBuffer& buffer, Direction direction,
                                      absl::Duration limit) {
  const std::pair<gloo::transport::UnboundBuffer*, Direction> entry(&buffer, direction);
  {
    MutexLock lock(&mutex_);
    if (!status_.ok()) return status_;
    awaited_.push_back(entry);
  }
  bool done = false;
  int peer = -1;
  std::string error;
  try {
    done = direction == Direction::kReceive ? buffer.waitRecv(&peer, ToMilliseconds(limit))
                                            : buffer.waitSend(&peer, ToMilliseconds(limit));
  } catch (const std::exception& thrown) {
    error = thrown.what();
  }
  MutexLock lock(&mutex_);
  awaited_.erase(std::find(awaited_.begin(), awaited_.end(), entry));
  if (!status_.ok()) return status_;
  if (!done) return absl::UnavailableError(error);
  return peer;
}

absl::Status Mesh::Await(gloo::transport::UnboundBuffer& buffer, Direction direction, int peer, size_t bytes,
                         absl::Duration limit) {
  const absl::StatusOr<int> heard = AwaitAnyone(buffer, direction, limit);
  if (!heard.ok()) return BreakFor(peer, absl::StrCat("cannot be reached: ", heard.status().message()));
  bytes_moved_.fetch_add(bytes, std::memory_order_relaxed);
  return absl::OkStatus();
}

int Mesh::LostPeer() {
  char byte = 0;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    try {
      context_->createUnboundBuffer(&byte, 1)->recv(peer, 0, 0, 1);
    } catch (const std::exception&) {
      return peer;
    }
  }
  return -1;
}

void Mesh::SendLastNote(uint64_t slot, std::string note, absl::Duration limit) {
  std::vector<std::unique_ptr<gloo::transport::UnboundBuffer>> sent;
  for (int peer = 0; peer < size(); ++peer) {
    if (peer == rank()) continue;
    try {
      auto buffer = context_->createUnboundBuffer(note.data(), note.size());
      buffer->send(peer, slot, 0, note.size());
      sent.push_back(std::move(buffer));
    } catch (const std::exception&) {
      // This peer is gone; the others still want to know.
    }
  }
  const absl::Time until = SteadyNow() + limit;
  for (const auto& buffer : sent) {
    try {
      buffer->waitSend(ToMilliseconds(until - SteadyNow()));
    } catch (const std::exception&) {
      // Stuck behind data that nobody takes: closing the connection will tell.
    }
  }
}

void Mesh::Close() {
  {
    MutexLock lock(&mutex_);
    if (closed_) return;
    closed_ = true;
  }
  const Ticking ticking(context_->ticker());
  try {
    context_->closeConnections();
  } catch (const std::exception&) {
    // Already broken: closed is what was wanted.
  }
}

Region::Region(Mesh& mesh, void* memory, size_t bytes)
    : mesh_(mesh), buffer_(mesh.context_->createUnboundBuffer(memory, bytes)) {}

absl::Status Region::Post(int peer, uint64_t slot, size_t offset, size_t bytes) {
  LS_RETURN_IF_ERROR(mesh_.status());
  try {
    buffer_->send(peer, slot, offset, bytes);
  } catch (const std::exception& error) {
    return mesh_.BreakFor(peer, absl::StrCat("cannot be sent to: ", error.what()));
  }
  return absl::OkStatus();
}

absl::Status Region::Send(int peer, uint64_t slot, size_t offset, size_t bytes) {
  LS_RETURN_IF_ERROR(Post(peer, slot, offset, bytes));
  sends_.push_back({peer, bytes});
  return absl::OkStatus();
}

absl::Status Region::ReceiveFromAnyone(uint64_t slot, size_t offset, size_t bytes) {
  LS_RETURN_IF_ERROR(mesh_.status());
  std::vector<int> peers;
  for (int peer = 0; peer < mesh_.size(); ++peer) {
    if (peer != mesh_.rank()) peers.push_back(peer);
  }
  try {
    buffer_->recv(peers, slot, offset, bytes);
  } catch (const std::exception& error) {
    return absl::UnavailableError(error.what());
  }
  return absl::OkStatus();
}

absl::Status Region::Receive(int peer, uint64_t slot, size_t offset, size_t bytes) {
  LS_RETURN_IF_ERROR(mesh_.status());
  try {
    buffer_->recv(peer, slot, offset, bytes);
  } catch (const std::exception& error) {
    return mesh_.BreakFor(peer, absl::StrCat("cannot be received from: ", error.what()));
  }
  receives_.push_back({peer, bytes});
  return absl::OkStatus();
}

absl::Status Region::AwaitSend(absl::Duration limit) {
  const Transfer next = sends_.front();
  sends_.pop_front();
  return mesh_.Await(*buffer_, Mesh::Direction::kSend, next.peer, next.bytes, limit);
}

absl::Status Region::AwaitReceive(absl::Duration limit) {
  const Transfer next = receives_.front();
  receives_.pop_front();
  return mesh_.Await(*buffer_, Mesh::Direction::kReceive, next.peer, next.bytes, limit);
}

absl::StatusOr<int> Region::Watch() { return mesh_.AwaitAnyone(*buffer_, Mesh::Direction::kReceive, kForever); }

absl::Status Region::AwaitAllSends(absl::Duration limit) {
  while (!sends_.empty()) LS_RETURN_IF_ERROR(AwaitSend(limit));
  return absl::OkStatus();
}

}  // namespace lockstep::worker
