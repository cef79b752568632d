// The part of the chief's gRPC server for workers: streams, heartbeats, shares, fetches. It parses, pushes an event and
// answers; the core takes every decision.
//
// Invariants
//   * A call without the job's secret is refused before a byte of it is read (common/net/chief_channel.h), and counted.
//   * The events of a session are pushed in order, SessionClosed last.
// Threading: thread-safe; handlers run on gRPC's threads.
#ifndef LOCKSTEP_CHIEF_SERVER_SESSION_SERVICE_H_
#define LOCKSTEP_CHIEF_SERVER_SESSION_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <string>

#include "chief/core/events.h"
#include "chief/server/access_log.h"
#include "chief/server/job_store.h"
#include "chief/server/session_registry.h"
#include "common/net/chief_channel.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::chief {

// What the services share of the chief.
struct ServiceContext {
  std::string job;
  Term term = 0;
  JobStore* store = nullptr;
  SessionRegistry* sessions = nullptr;
  // Queues an event for the loop. `wait`: block while the queue is full. Returns false if it was dropped.
  std::function<bool(Event event, bool wait)> post;
  // How long ago the newest turn of the loop began.
  std::function<absl::Duration()> since_turn;
  AccessLog access;
  // Called with the peer of every call that carried a secret of the job (GuardedListener::Proved). Set before calls
  // come.
  std::function<void(const std::string& peer)> proved = [](const std::string&) {};

  // OK if the call's role includes `least`; else PermissionDenied.
  grpc::Status Admit(const grpc::ServerContextBase& call, Role least) const {
    proved(call.peer());
    return CheckRole(call, least);
  }
};

class SessionService final : public proto::Session::WithCallbackMethod_Connect<
                                 proto::Session::WithCallbackMethod_Beat<proto::Session::Service>> {
 public:
  // `context` outlives the service.
  explicit SessionService(ServiceContext* context) : context_(*context) {}

  grpc::ServerBidiReactor<proto::WorkerEnvelope, proto::ChiefEnvelope>* Connect(
      grpc::CallbackServerContext* call) override;
  grpc::ServerUnaryReactor* Beat(grpc::CallbackServerContext* call, const proto::HeartbeatRequest* request,
                                 proto::HeartbeatReply* reply) override;
  grpc::Status UploadShare(grpc::ServerContext* call, grpc::ServerReader<proto::ShareChunk>* chunks,
                           proto::UploadReply* reply) override;
  grpc::Status Fetch(grpc::ServerContext* call, const proto::FetchRequest* request,
                     grpc::ServerWriter<proto::FetchChunk>* chunks) override;

 private:
  absl::Status CheckFence(const proto::WorkerFence& fence) const;
  absl::Status TakeShare(const proto::ShareHeader& header, const SnapshotId& id,
                         grpc::ServerReader<proto::ShareChunk>& chunks);
  absl::Status SendShare(const proto::FetchShare& wanted, grpc::ServerWriter<proto::FetchChunk>& chunks);

  ServiceContext& context_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_SESSION_SERVICE_H_
