#include "tests/load/session_link.h"

#include <utility>

#include "common/net/chief_channel.h"
#include "common/net/rpc.h"

namespace lockstep::load {
Traffic::Count Traffic::Total() const {
  Count total;
  for (size_t kind = 0; kind < kKinds; ++kind) {
    total.messages += messages_[kind];
    total.bytes += bytes_[kind];
  }
  return total;
}

void SessionLink::Open(const std::string& address, const CallerKey& key, Traffics* traffics, Callbacks callbacks,
                       const std::function<void(std::shared_ptr<SessionLink>)>& take) {
  std::shared_ptr<SessionLink> link(new SessionLink(traffics, std::move(callbacks)));
  link->channel_ = MakeChiefChannel(address, "session", key).channel;
  link->stub_ = proto::Session::NewStub(link->channel_);
  link->self_ = link;
  link->stub_->async()->Connect(&link->context_, link.get());
  take(link);
  link->StartCall();
}

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
