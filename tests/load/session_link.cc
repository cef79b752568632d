#include "tests/load/session_link.h"

#include <fcntl.h>
#include <grpcpp/create_channel_posix.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/rpc.h"

namespace lockstep::load {
namespace {

// A connected socket that does not block; -1 when nobody listens.
int ConnectTo(const std::string& address) {
  const absl::StatusOr<HostPort> place = ParseHostPort(address);
  if (!place.ok()) return -1;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(place->host.c_str(), absl::StrCat(place->port).c_str(), &hints, &found) != 0) return -1;
  const int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
  freeaddrinfo(found);
  if (!connected) {
    if (fd >= 0) close(fd);
    return -1;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  return fd;
}

}  // namespace

Traffic::Count Traffic::Total() const {
  Count total;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    total.messages += messages_[kind];
    total.bytes += bytes_[kind];
  }
  return total;
}

bool SessionLink::Open(const std::string& address, const std::string& token, Traffics* traffics, Callbacks callbacks,
                       const std::function<void(std::shared_ptr<SessionLink>)>& take) {
  const int fd = ConnectTo(address);
  if (fd < 0) return false;
  std::shared_ptr<SessionLink> link(new SessionLink(traffics, std::move(callbacks)));
  link->socket_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  link->channel_ = grpc::CreateCustomInsecureChannelFromFd(address, fd, arguments);
  link->stub_ = proto::Session::NewStub(link->channel_);
  SetToken(link->context_, token);
  link->self_ = link;
  link->stub_->async()->Connect(&link->context_, link.get());
  take(link);
  link->StartCall();
  return true;
}

SessionLink::~SessionLink() { close(socket_); }

void SessionLink::Cut() { shutdown(socket_, SHUT_RDWR); }

void SessionLink::Send(const proto::WorkerEnvelope& envelope) {
  MutexLock lock(&mutex_);
  if (!open_) return;
  traffics_.to_chief.Add(envelope.message().kind_case(), envelope.ByteSizeLong());
  outgoing_.push_back(envelope);
  WriteNextLocked();
}

void SessionLink::WriteNextLocked() {
  if (writing_ || !open_ || outgoing_.empty()) return;
  writing_ = true;
  StartWrite(&outgoing_.front());
}

void SessionLink::OnReadInitialMetadataDone(bool ok) {
  // A refused session ends without metadata of its own.
  if (!ok || context_.GetServerInitialMetadata().count("lockstep-open") == 0) return;
  {
    MutexLock lock(&mutex_);
    open_ = true;
  }
  StartRead(&incoming_);
  callbacks_.opened();
}

void SessionLink::OnReadDone(bool ok) {
  if (!ok) {
    // The read that is under way keeps OnDone off: from here on nothing is begun.
    MutexLock lock(&mutex_);
    open_ = false;
    return;
  }
  traffics_.from_chief.Add(incoming_.command().kind_case(), incoming_.ByteSizeLong());
  absl::StatusOr<FencedCommand> command = FromWire(incoming_);
  if (command.ok()) callbacks_.command(*std::move(command));
  StartRead(&incoming_);
}

void SessionLink::OnWriteDone(bool) {
  MutexLock lock(&mutex_);
  writing_ = false;
  outgoing_.pop_front();
  WriteNextLocked();
}

void SessionLink::OnDone(const grpc::Status& status) {
  const Callbacks callbacks = std::move(callbacks_);
  callbacks.closed(status.ok() ? absl::UnavailableError("the chief closed the session") : FromGrpc(status),
                   std::move(self_));
}

}  // namespace lockstep::load
