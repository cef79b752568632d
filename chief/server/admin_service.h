// The part of the chief's gRPC server for people and supervisors: status, stop, checkpoints, drain, and reports of how
// worker processes ended.
//
// Threading: thread-safe; handlers run on gRPC's threads.
#ifndef LOCKSTEP_CHIEF_SERVER_ADMIN_SERVICE_H_
#define LOCKSTEP_CHIEF_SERVER_ADMIN_SERVICE_H_

#include <grpcpp/grpcpp.h>

#include "chief/server/chief_loop.h"
#include "chief/server/session_service.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::chief {

class AdminService final : public proto::Admin::Service {
 public:
  // Both outlive the service.
  AdminService(ServiceContext* context, ChiefLoop* loop) : context_(*context), loop_(*loop) {}

  grpc::Status Status(grpc::ServerContext* call, const proto::StatusRequest* request,
                      proto::StatusReply* reply) override;
  grpc::Status Stop(grpc::ServerContext* call, const proto::StopRequest* request, proto::StopReply* reply) override;
  grpc::Status ChangeCheckpoint(grpc::ServerContext* call, const proto::ChangeCheckpointRequest* request,
                                proto::ChangeCheckpointReply* reply) override;
  grpc::Status Drain(grpc::ServerContext* call, const proto::DrainRequest* request, proto::DrainReply* reply) override;
  grpc::Status ReportExit(grpc::ServerContext* call, const proto::ExitReport* request,
                          proto::ExitReply* reply) override;

 private:
  ServiceContext& context_;
  ChiefLoop& loop_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_ADMIN_SERVICE_H_
