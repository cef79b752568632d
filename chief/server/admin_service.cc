#include "chief/server/admin_service.h"

#include "common/net/rpc.h"

namespace lockstep::chief {

grpc::Status AdminService::Status(grpc::ServerContext* call, const proto::StatusRequest*, proto::StatusReply* reply) {
  if (const grpc::Status allowed = CheckToken(context_, *call); !allowed.ok()) return allowed;
  absl::StatusOr<proto::StatusReply> answer = loop_.Ask();
  if (!answer.ok()) return ToGrpc(answer.status());
  *reply = *std::move(answer);
  reply->set_refused_callers(context_.refused_callers);
  return grpc::Status::OK;
}

grpc::Status AdminService::Stop(grpc::ServerContext* call, const proto::StopRequest* request, proto::StopReply*) {
  if (const grpc::Status allowed = CheckToken(context_, *call); !allowed.ok()) return allowed;
  loop_.Post(StopRequested{request->by()}, true);
  return grpc::Status::OK;
}

grpc::Status AdminService::ReportExit(grpc::ServerContext* call, const proto::ExitReport* request, proto::ExitReply*) {
  if (const grpc::Status allowed = CheckToken(context_, *call); !allowed.ok()) return allowed;
  loop_.Post(ProcessExited{request->name(), request->signal(), request->exit_code(), request->last(), request->cause()},
             true);
  return grpc::Status::OK;
}

}  // namespace lockstep::chief
