#include "chief/server/session_service.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/liveness/activity.h"
#include "common/net/rpc.h"
#include "common/protocol/wire.h"
#include "common/status/status_macros.h"
#include "common/storage/may_pass.h"

namespace lockstep::chief {
namespace {

constexpr size_t kQueuedCommands = 65536;
// The loop turns several times a second.
constexpr absl::Duration kLoopHangs = absl::Seconds(2);

// Ends a call at once with a status.
class RefusedStream final : public grpc::ServerBidiReactor<proto::WorkerEnvelope, proto::ChiefEnvelope> {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// One worker's stream. Alive until gRPC is done with it (`self_`) and the registry has let go.
//
//   1 open ──Close, a failed read, a bad message──▶ 2 finishing (what is queued goes first) ──▶ 3 done
class OpenStream final : public grpc::ServerBidiReactor<proto::WorkerEnvelope, proto::ChiefEnvelope>,
                         public SessionStream {
 public:
  static OpenStream* Start(ServiceContext& context, grpc::CallbackServerContext* call) {
    call->AddInitialMetadata("lockstep-open", "1");
    auto stream = std::make_shared<OpenStream>(context);
    OpenStream* const raw = stream.get();
    stream->call_ = call;
    stream->id_ = context.sessions->Add(stream);
    stream->self_ = stream;
    raw->StartSendInitialMetadata();
    raw->StartRead(&raw->incoming_);
    return raw;
  }
  explicit OpenStream(ServiceContext& context) : context_(context) {}

  void OnReadDone(bool ok) override {
    if (!ok) return End(grpc::Status::OK, "the stream was closed or reset");
    absl::StatusOr<FencedMessage> message = FromWire(incoming_);
    if (!message.ok()) return End(ToGrpc(message.status()), std::string(message.status().message()));
    if (std::holds_alternative<Hello>(message->message)) context_.sessions->SaidHello(id_, message->fence.incarnation);
    if (!context_.post(FromWorker{id_, message->fence, std::move(message->message)}, false)) {
      if (context_.sessions->closing()) return;
      return End(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the chief is too busy"), "the queue is full");
    }
    StartRead(&incoming_);
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&mutex_);
    writing_ = false;
    outgoing_.pop_front();
    if (!ok) outgoing_.clear();
    WriteNextLocked();
  }

  void OnCancel() override { End(grpc::Status::CANCELLED, "the stream was reset"); }

  void OnDone() override {
    context_.sessions->Remove(id_);
    std::string reason;
    {
      MutexLock lock(&mutex_);
      reason = reason_.empty() ? "the stream ended" : reason_;
    }
    context_.post(SessionClosed{id_, reason}, true);
    self_.reset();
  }

  void Send(std::shared_ptr<const proto::ChiefEnvelope> command) override {
    MutexLock lock(&mutex_);
    if (ending_) return;
    if (outgoing_.size() >= kQueuedCommands) {
      EndLocked(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "the worker takes nothing"), "it takes nothing");
      return;
    }
    outgoing_.push_back(std::move(command));
    WriteNextLocked();
  }

  void Close(bool handed_over) override {
    MutexLock lock(&mutex_);
    if (!ending_ && handed_over) call_->AddTrailingMetadata("lockstep-handed-over", "1");
    EndLocked(grpc::Status::OK, "closed by the chief");
  }

 private:
  void End(const grpc::Status& status, const std::string& reason) {
    MutexLock lock(&mutex_);
    EndLocked(status, reason);
  }
  void EndLocked(const grpc::Status& status, const std::string& reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (ending_) return;
    ending_ = true;
    status_ = status;
    reason_ = reason;
    WriteNextLocked();
  }
  void WriteNextLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (writing_ || finished_) return;
    if (!outgoing_.empty()) {
      writing_ = true;
      StartWrite(outgoing_.front().get());
    } else if (ending_) {
      finished_ = true;
      Finish(status_);
    }
  }

  ServiceContext& context_;
  grpc::CallbackServerContext* call_ = nullptr;  // lives until OnDone
  SessionId id_ = 0;
  std::shared_ptr<OpenStream> self_;
  proto::WorkerEnvelope incoming_;
  Mutex mutex_;
  // The first one is being written.
  std::deque<std::shared_ptr<const proto::ChiefEnvelope>> outgoing_ GUARDED_BY(mutex_);
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  grpc::Status status_ GUARDED_BY(mutex_);
  std::string reason_ GUARDED_BY(mutex_);
};

}  // namespace

grpc::ServerBidiReactor<proto::WorkerEnvelope, proto::ChiefEnvelope>* SessionService::Connect(
    grpc::CallbackServerContext* call) {
  const grpc::Status allowed = context_.Admit(*call, Role::kJoin);
  if (!allowed.ok()) return new RefusedStream(allowed);
  return OpenStream::Start(context_, call);
}

grpc::ServerUnaryReactor* SessionService::Beat(grpc::CallbackServerContext* call,
                                               const proto::HeartbeatRequest* request, proto::HeartbeatReply* reply) {
  grpc::ServerUnaryReactor* const reactor = call->DefaultReactor();
  grpc::Status status = context_.Admit(*call, Role::kJoin);
  if (status.ok()) {
    absl::StatusOr<FencedHeartbeat> beat = FromWire(*request);
    status = ToGrpc(beat.status());
    if (beat.ok()) context_.post(HeartbeatReceived{beat->fence, beat->heartbeat, DoingOf(*call)}, false);
    reply->set_term(context_.term);
    // This thread lives while the loop hangs, or has ended: it must not speak for it.
    const absl::Duration silent = context_.since_turn();
    if (status.ok() && (silent > kLoopHangs || silent < absl::ZeroDuration())) {
      status = {grpc::StatusCode::UNAVAILABLE,
                silent < absl::ZeroDuration()
                    ? "the chief is ending"
                    : absl::StrCat("the chief's loop has not turned for ", absl::FormatDuration(silent))};
    }
  }
  reactor->Finish(status);
  return reactor;
}

absl::Status SessionService::CheckFence(const proto::WorkerFence& fence) const {
  if (fence.term() != context_.term || fence.job() != context_.job) {
    return absl::FailedPreconditionError(absl::StrCat("the call is for job '", fence.job(), "' under term ",
                                                      fence.term(), ", this chief has '", context_.job, "' under term ",
                                                      context_.term, "; say Hello again"));
  }
  const Incarnation worker{fence.incarnation().high(), fence.incarnation().low()};
  if (context_.sessions->Has(worker)) return absl::OkStatus();
  // Its session may come back, and with it what it asks for now.
  return absl::UnavailableError(
      absl::StrCat("worker process ", worker.ToString(), " has no session with this chief; it says Hello first"));
}

grpc::Status SessionService::UploadShare(grpc::ServerContext* call, grpc::ServerReader<proto::ShareChunk>* chunks,
                                         proto::UploadReply* reply) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kJoin); !allowed.ok()) return allowed;
  proto::ShareChunk first;
  if (!chunks->Read(&first) || !first.has_header()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "an upload begins with its header"};
  }
  const proto::ShareHeader& header = first.header();
  const absl::StatusOr<SnapshotId> id = FromWire(header.snapshot());
  absl::Status status = id.status();
  if (status.ok()) status = CheckFence(header.fence());
  if (!status.ok()) return ToGrpc(status);
  {
    const NowDoing taking("share ", header.share() + 1, " of ", header.shares(), " of step ", id->step,
                          " comes from a worker");
    status = TakeShare(header, *id, *chunks);
  }
  reply->set_accepted(status.ok());
  reply->set_message(std::string(status.message()));
  if (status.ok()) {
    context_.post(ShareStored{*id, header.share(), header.shares()}, true);
  } else if (MayPass(status)) {
    context_.post(StorageFailed{*id, std::string(status.message()), /*may_pass=*/true}, true);
  } else {
    const proto::Incarnation& sender = header.fence().incarnation();
    context_.post(ShareBroken{*id, header.share(), header.shares(), std::string(status.message()),
                              Incarnation{sender.high(), sender.low()}, absl::IsDataLoss(status)},
                  true);
  }
  return grpc::Status::OK;
}

absl::Status SessionService::TakeShare(const proto::ShareHeader& header, const SnapshotId& id,
                                       grpc::ServerReader<proto::ShareChunk>& chunks) {
  LS_ASSIGN_OR_RETURN(ShareReceiver receiver, context_.store->Receive(id, header.share(), header.shares(),
                                                                      header.tensor_digests(), header.leaf_digests()));
  proto::ShareChunk chunk;
  while (chunks.Read(&chunk)) LS_RETURN_IF_ERROR(receiver.Add(chunk.data(), chunk.crc32c()));
  LS_RETURN_IF_ERROR(receiver.End());
  return context_.store->CheckShareComplete(id, header.share());
}

grpc::Status SessionService::Fetch(grpc::ServerContext* call, const proto::FetchRequest* request,
                                   grpc::ServerWriter<proto::FetchChunk>* chunks) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kJoin); !allowed.ok()) return allowed;
  if (const absl::Status fence = CheckFence(request->fence()); !fence.ok()) return ToGrpc(fence);
  absl::StatusOr<std::string> bytes = std::string();
  switch (request->what_case()) {
    case proto::FetchRequest::kJob:
      bytes = context_.store->job_yaml();
      break;
    case proto::FetchRequest::kMetagraph:
      bytes = context_.store->ReadMetagraph(request->metagraph());
      break;
    case proto::FetchRequest::kPlan:
      bytes = context_.store->ReadPlan(request->plan());
      break;
    case proto::FetchRequest::kShare:
      return ToGrpc(SendShare(request->share(), *chunks));
    case proto::FetchRequest::WHAT_NOT_SET:
      bytes = absl::InvalidArgumentError("nothing is asked for");
      break;
  }
  if (!bytes.ok()) return ToGrpc(bytes.status());
  for (size_t offset = 0; offset < bytes->size(); offset += kChunkBytes) {
    proto::FetchChunk chunk;
    chunk.set_data(bytes->substr(offset, kChunkBytes));
    chunk.set_crc32c(Crc32c(chunk.data()));
    if (!chunks->Write(chunk)) break;
  }
  return grpc::Status::OK;
}

absl::Status SessionService::SendShare(const proto::FetchShare& wanted, grpc::ServerWriter<proto::FetchChunk>& chunks) {
  LS_ASSIGN_OR_RETURN(const SnapshotId id, FromWire(wanted.snapshot()));
  LS_ASSIGN_OR_RETURN(const Share share, context_.store->ShareOf(wanted.share(), wanted.shares()));
  const NowDoing sending("share ", wanted.share() + 1, " of ", wanted.shares(), " of step ", id.step,
                         " goes to a worker");
  for (uint64_t offset = 0; offset < share.bytes; offset += kChunkBytes) {
    proto::FetchChunk chunk;
    LS_ASSIGN_OR_RETURN(
        *chunk.mutable_data(),
        context_.store->ReadShare(id, share, offset, std::min<uint64_t>(kChunkBytes, share.bytes - offset)));
    chunk.set_crc32c(Crc32c(chunk.data()));
    if (!chunks.Write(chunk)) return absl::CancelledError("the worker went away");
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
