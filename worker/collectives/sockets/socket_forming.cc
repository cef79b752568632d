#include "worker/collectives/sockets/socket_forming.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/digest/random_secret.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/collectives/completion.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/collectives/sockets/host_socket.h"
#include "worker/collectives/sockets/peer_probe.h"

namespace lockstep::worker {
namespace {

constexpr int kSecretBytes = 32;

// A failure that concerns `peer`, with the name it has.
absl::Status About(int peer, const std::string& name, const absl::Status& status) {
  const absl::Status told(status.code(), absl::StrCat("cannot connect with ", name, ": ", status.message()));
  return Blame(told, peer);
}

// To the end, as the dialling side.
absl::StatusOr<std::unique_ptr<PeerStream>> Shake(TlsHandshake& handshake, int cancel, absl::Time until,
                                                  const std::string& what) {
  for (;;) {
    LS_ASSIGN_OR_RETURN(const TlsHandshake::Want want, handshake.Step());
    if (want == TlsHandshake::Want::kNothing) return handshake.Finish();
    const short events = want == TlsHandshake::Want::kRead ? POLLIN : POLLOUT;
    LS_RETURN_IF_ERROR(AwaitReady(handshake.fd(), events, cancel, until, what));
  }
}

}  // namespace

SocketForming::SocketForming(Options options, PeerListener& listener, RendezvousStore& store)
    : options_(std::move(options)), listener_(listener), store_(store) {
  std::vector<std::string>& names = options_.group.names;
  for (size_t rank = names.size(); rank < static_cast<size_t>(options_.group.size); ++rank) {
    names.push_back(absl::StrCat("rank ", rank));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;  // Run tells
  cancel_read_ = Descriptor(ends[0]);
  MutexLock lock(&mutex_);
  cancel_write_ = Descriptor(ends[1]);
}

SocketForming::~SocketForming() = default;

void SocketForming::Abort(const absl::Status& cause) {
  store_.Abort(cause);
  MutexLock lock(&mutex_);
  if (aborted_.ok()) aborted_ = AsAborted(cause);
  cancel_write_.Close();
  if (expected_ != nullptr) expected_->Abort(cause);
}

absl::StatusOr<std::unique_ptr<Communicator>> SocketForming::Run() {
  const SocketGroup& group = options_.group;
  if (group.rank < 0 || group.rank >= group.size) {
    return absl::InvalidArgumentError(absl::StrCat("rank ", group.rank, " of ", group.size));
  }
  if (group.size == 1) {
    MutexLock lock(&mutex_);
    LS_RETURN_IF_ERROR(aborted_);
    return std::move(MakeLoopback(group.generation, 1).front());
  }
  if (!cancel_read_.is_open()) return absl::UnavailableError("no descriptor is left for connections to peers");
  auto communicator = Connect();
  MutexLock lock(&mutex_);
  expected_.reset();
  LS_RETURN_IF_ERROR(aborted_);
  return communicator;
}

absl::StatusOr<std::unique_ptr<Communicator>> SocketForming::Connect() {
  const SocketGroup& group = options_.group;
  const absl::Time until = SteadyNow() + options_.form_limit;
  const std::string prefix = absl::StrCat("generation-", group.generation.ToString(), "/");
  LS_ASSIGN_OR_RETURN(std::string secret, RandomSecretHex(kSecretBytes));
  std::shared_ptr<ExpectedPeers> expected;
  {
    MutexLock lock(&mutex_);
    LS_RETURN_IF_ERROR(aborted_);
    // Before anybody knows of the secret.
    expected = expected_ = listener_.Expect(group.generation, group.rank, group.size, secret, options_.security);
  }
  if (const absl::Status here = CanListen(options_.host); !here.ok()) return Blame(here, group.rank);
  const PeerCard card{std::move(secret), options_.security, listener_.address()};
  LS_RETURN_IF_ERROR(store_.Set(absl::StrCat(prefix, group.rank), card.Text()));
  std::vector<std::unique_ptr<PeerStream>> streams(static_cast<size_t>(group.size));
  for (int peer = 0; peer < group.rank; ++peer) {
    LS_ASSIGN_OR_RETURN(streams[static_cast<size_t>(peer)], Dial(peer, prefix, until));
  }
  for (int peer = group.rank + 1; peer < group.size; ++peer) {
    LS_ASSIGN_OR_RETURN(streams[static_cast<size_t>(peer)], Accept(*expected, peer, prefix, until));
  }
  LS_ASSIGN_OR_RETURN(std::unique_ptr<HostMemory> memory, ShareMemory(streams, until));
  return MakeSocketCommunicator(options_.group, std::move(streams), std::move(memory));
}

absl::StatusOr<std::unique_ptr<HostMemory>> SocketForming::ShareMemory(
    const std::vector<std::unique_ptr<PeerStream>>& streams, absl::Time until) {
  std::vector<int> peers;
  for (size_t peer = 0; peer < streams.size(); ++peer) {
    const PeerStream* const stream = streams[peer].get();
    if (stream != nullptr && !stream->encrypts() && IsHostSocket(stream->fd())) peers.push_back(static_cast<int>(peer));
  }
  if (peers.empty()) return nullptr;
  auto memory = std::make_unique<HostMemory>(options_.memory, options_.group.size);
  for (const int peer : peers) {
    const absl::Status passed = memory->PassTo(peer, streams[static_cast<size_t>(peer)]->fd());
    if (!passed.ok()) return About(peer, NameOf(peer), passed);
  }
  for (const int peer : peers) {
    const NowDoing waiting("waiting for the shared memory of ", NameOf(peer));
    const int fd = streams[static_cast<size_t>(peer)]->fd();
    absl::Status taken = AwaitReady(fd, POLLIN, cancel_read_.get(), until, "sharing memory");
    if (taken.ok()) taken = memory->TakeFrom(peer, fd);
    if (!taken.ok()) return About(peer, NameOf(peer), taken);
  }
  return memory;
}

absl::StatusOr<SocketForming::Dialled> SocketForming::ConnectTo(const PeerCard& card, absl::Time until,
                                                                const std::string& what) {
  if (options_.host_sockets) {
    if (Descriptor socket = ConnectOnHost(card.address); socket.is_open()) return Dialled{std::move(socket), true};
  }
  LS_ASSIGN_OR_RETURN(const sockaddr_in target, ResolveAddress(card.address));
  LS_ASSIGN_OR_RETURN(Descriptor socket, worker::ConnectTo(target, cancel_read_.get(), until, what));
  return Dialled{std::move(socket), IsLoopback(target)};
}

absl::StatusOr<std::unique_ptr<PeerStream>> SocketForming::Dial(int peer, const std::string& prefix, absl::Time until) {
  const SocketGroup& group = options_.group;
  const auto connect = [&]() -> absl::StatusOr<std::unique_ptr<PeerStream>> {
    LS_ASSIGN_OR_RETURN(const std::string text, store_.Get(absl::StrCat(prefix, peer), until - SteadyNow()));
    LS_ASSIGN_OR_RETURN(const PeerCard card, PeerCard::Parse(text));
    const std::string what = absl::StrCat("connecting to ", card.address);
    LS_ASSIGN_OR_RETURN(Dialled dialled, ConnectTo(card, until, what));
    const PeerPair pair{
        .generation = group.generation,
        .from = group.rank,
        .to = peer,
        .size = group.size,
        .encrypts = Encrypts(options_.security, dialled.loopback) || Encrypts(card.security, dialled.loopback)};
    const std::string prelude = RankPrelude(card.secret, pair);
    // Fits into an empty send buffer.
    const ssize_t sent = send(dialled.socket.get(), prelude.data(), prelude.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(prelude.size())) {
      return SystemError(what);
    }
    LS_ASSIGN_OR_RETURN(const auto handshake,
                        MakeTlsHandshake(std::move(dialled.socket), PreSharedKey(card.secret, pair),
                                         /*dials=*/true, pair.encrypts));
    return Shake(*handshake, cancel_read_.get(), until, what);
  };
  const NowDoing connecting("connecting to ", NameOf(peer));
  auto stream = connect();
  if (stream.ok()) return stream;
  return About(peer, NameOf(peer), stream.status());
}

absl::StatusOr<std::unique_ptr<PeerStream>> SocketForming::Accept(ExpectedPeers& expected, int peer,
                                                                  const std::string& prefix, absl::Time until) {
  const NowDoing waiting("waiting for the connection of ", NameOf(peer));
  auto stream = expected.Await(peer, until);
  if (stream.ok()) return stream;
  // One that has not even left its address is more likely the cause than this one, which may wait for it as well.
  int suspect = peer;
  for (int later = peer; later < options_.group.size; ++later) {
    if (store_.Get(absl::StrCat(prefix, later), absl::ZeroDuration()).ok()) continue;
    suspect = later;
    break;
  }
  return About(suspect, NameOf(suspect), stream.status());
}

}  // namespace lockstep::worker
