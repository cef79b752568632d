#include "worker/session/chief_stream.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/log/log.h"
#include "common/net/chief_channel.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kOutgoingMessages = 4096;
// Between looks at whether the attempt is still wanted and the chief still there.
constexpr std::chrono::milliseconds kLookEvery(200);

}  // namespace

ChiefStream::ChiefStream(const ChiefClient* client, Callbacks callbacks)
    : client_(client), callbacks_(std::move(callbacks)), outgoing_(kOutgoingMessages), thread_([this] { Run(); }) {}

ChiefStream::~ChiefStream() {
  outgoing_.Close();
  context_.TryCancel();
  thread_.join();
}

bool ChiefStream::Send(const WorkerFence& fence, const WorkerMessage& message) {
  if (outgoing_.TryPush(ToWire(fence, message))) return true;
  // The chief takes nothing, or the stream ended: one way or the other it is of no use any more.
  context_.TryCancel();
  return false;
}

void ChiefStream::Flush(absl::Duration limit) {
  outgoing_.Close();
  const auto until = std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(limit);
  MutexLock lock(&mutex_);
  while (!ended_) {
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return;
    ended_changed_.WaitWithTimeout(&mutex_, absl::FromChrono(left));
  }
}

void ChiefStream::Run() {
  bool handed_over = false;
  const absl::Status status = Converse(handed_over);
  callbacks_.closed(status, handed_over);
  MutexLock lock(&mutex_);
  ended_ = true;
  ended_changed_.SignalAll();
}

absl::Status ChiefStream::Converse(bool& handed_over) {
  LS_ASSIGN_OR_RETURN(const std::string address, client_->Address());
  const ChiefChannel chief = MakeChiefChannel(address, "session", client_->key());
  LS_RETURN_IF_ERROR(AwaitConnection(chief, address));
  const auto stub = proto::Session::NewStub(chief.channel);
  const std::unique_ptr<Stream> stream = stub->Connect(&context_);
  stream->WaitForInitialMetadata();
  std::thread writer;
  proto::ChiefEnvelope envelope;
  absl::Status broken;
  // A refused stream ends without metadata of its own; then Read fails at once and Finish says why.
  if (context_.GetServerInitialMetadata().count("lockstep-open") > 0) {
    callbacks_.opened();
    writer = std::thread([this, &stream] { Write(stream.get()); });
  }
  while (broken.ok() && stream->Read(&envelope)) {
    absl::StatusOr<FencedCommand> command = FromWire(envelope);
    broken = command.status();
    if (command.ok()) callbacks_.command(*std::move(command));
  }
  outgoing_.Close();
  // Only an end of ours is made by a cancel: it would hide the status with which the chief ended the stream.
  if (!broken.ok()) context_.TryCancel();
  if (writer.joinable()) writer.join();
  const grpc::Status status = stream->Finish();
  LS_RETURN_IF_ERROR(broken);
  handed_over = status.ok() && context_.GetServerTrailingMetadata().count("lockstep-handed-over") > 0;
  if (handed_over) return absl::UnavailableError("it was told to go; the next one is waited for");
  if (status.ok()) return absl::UnavailableError("the chief closed the session");
  return FromGrpc(status);
}

absl::Status ChiefStream::AwaitConnection(const ChiefChannel& chief, const std::string& address) {
  const auto begin = std::chrono::steady_clock::now();
  const auto until = begin + absl::ToChronoMilliseconds(client_->connect_limit().limit());
  bool connected = false;
  while (!connected && std::chrono::steady_clock::now() < until) {
    const std::chrono::nanoseconds left = until - std::chrono::steady_clock::now();
    connected = chief.channel->WaitForConnected(std::chrono::system_clock::now() +
                                                std::min<std::chrono::nanoseconds>(left, kLookEvery));
    if (connected) break;
    if (*chief.stranger) return Stranger(address);
    if (outgoing_.closed()) return absl::CancelledError("the attempt was ended");
    if (const auto now = client_->Address(); now.ok() && *now != address) {
      return absl::UnavailableError(absl::StrCat("the chief has moved from ", address, " to ", *now));
    }
  }
  if (!connected) {
    client_->connect_limit().Missed();
    return absl::UnavailableError(absl::StrCat("no chief answers at ", address));
  }
  client_->SetProved();
  client_->connect_limit().Answered(absl::FromChrono(std::chrono::steady_clock::now() - begin));
  return absl::OkStatus();
}

// Whoever has taken the port of a chief that is gone ends no worker; but a worker that never had a session may have the
// wrong token.
absl::Status ChiefStream::Stranger(const std::string& address) {
  absl::Status status = NotTheChief(address, client_->proved());
  if (client_->proved() && client_->FirstStranger()) LS_LOG(warn, status.message(), "; the chief is waited for");
  return status;
}

void ChiefStream::Write(Stream* stream) {
  while (auto envelope = outgoing_.Pop()) {
    if (!stream->Write(*envelope)) return;
  }
  stream->WritesDone();
}

}  // namespace lockstep::worker
