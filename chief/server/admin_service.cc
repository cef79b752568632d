#include "chief/server/admin_service.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/net/chief_channel.h"
#include "common/net/rpc.h"

namespace lockstep::chief {
namespace {

std::optional<CheckpointChange> ChangeOf(proto::ChangeCheckpointRequest::Change change) {
  switch (change) {
    case proto::ChangeCheckpointRequest::CHANGE_PIN:
      return CheckpointChange::kPin;
    case proto::ChangeCheckpointRequest::CHANGE_UNPIN:
      return CheckpointChange::kUnpin;
    case proto::ChangeCheckpointRequest::CHANGE_REMOVE:
      return CheckpointChange::kRemove;
    default:
      return std::nullopt;
  }
}

absl::string_view VerbOf(CheckpointChange change) {
  switch (change) {
    case CheckpointChange::kPin:
      return "pin";
    case CheckpointChange::kUnpin:
      return "unpin";
    case CheckpointChange::kRemove:
      return "remove";
  }
  return "";
}

}  // namespace

grpc::Status AdminService::Status(grpc::ServerContext* call, const proto::StatusRequest*, proto::StatusReply* reply) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kRead); !allowed.ok()) return allowed;
  absl::StatusOr<proto::StatusReply> answer = loop_.Ask();
  if (!answer.ok()) return ToGrpc(answer.status());
  *reply = *std::move(answer);
  reply->set_refused_callers(context_.access.refused());
  return grpc::Status::OK;
}

grpc::Status AdminService::Stop(grpc::ServerContext* call, const proto::StopRequest* request, proto::StopReply*) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kAdmin); !allowed.ok()) return allowed;
  context_.access.Did(CallerOf(*call), absl::StrCat("stop, for ", request->by()));
  loop_.Post(StopRequested{request->by()}, true);
  return grpc::Status::OK;
}

grpc::Status AdminService::Drain(grpc::ServerContext* call, const proto::DrainRequest* request,
                                 proto::DrainReply* reply) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kAdmin); !allowed.ok()) return allowed;
  DrainRequested drain;
  drain.targets.assign(request->targets().begin(), request->targets().end());
  drain.undo = request->undo();
  if (request->has_within()) {
    drain.within = absl::Seconds(request->within().seconds()) + absl::Nanoseconds(request->within().nanos());
  }
  drain.by = request->by();
  context_.access.Did(CallerOf(*call), absl::StrCat(drain.undo ? "drain no more " : "drain ",
                                                    absl::StrJoin(drain.targets, ", "), ", for ", drain.by));
  const absl::StatusOr<std::vector<std::string>> lines = loop_.Drain(std::move(drain));
  if (!lines.ok()) return ToGrpc(lines.status());
  for (const std::string& line : *lines) reply->add_lines(line);
  return grpc::Status::OK;
}

grpc::Status AdminService::ChangeCheckpoint(grpc::ServerContext* call, const proto::ChangeCheckpointRequest* request,
                                            proto::ChangeCheckpointReply* reply) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kAdmin); !allowed.ok()) return allowed;
  const std::optional<CheckpointChange> change = ChangeOf(request->change());
  if (!change.has_value()) return {grpc::StatusCode::INVALID_ARGUMENT, "this chief does not know such a change"};
  context_.access.Did(CallerOf(*call), absl::StrCat(VerbOf(*change), " checkpoint ", request->step()));
  const absl::StatusOr<std::string> text = loop_.ChangeCheckpoint(*change, request->step());
  if (!text.ok()) return ToGrpc(text.status());
  reply->set_text(*text);
  return grpc::Status::OK;
}

grpc::Status AdminService::ReportExit(grpc::ServerContext* call, const proto::ExitReport* request, proto::ExitReply*) {
  if (const grpc::Status allowed = context_.Admit(*call, Role::kAdmin); !allowed.ok()) return allowed;
  loop_.Post(ProcessExited{request->name(), request->signal(), request->exit_code(), request->last(), request->cause()},
             true);
  return grpc::Status::OK;
}

}  // namespace lockstep::chief
