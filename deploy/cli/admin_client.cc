#include "deploy/cli/admin_client.h"

#include <chrono>
#include <utility>

#include "chief/term/token.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::cli {
namespace {

void Prepare(grpc::ClientContext& context, const std::string& token, absl::Duration deadline) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline));
  SetToken(context, token);
}

}  // namespace

AdminClient::AdminClient(const std::string& address, std::string token)
    : address_(address), token_(std::move(token)), stub_(proto::Admin::NewStub(MakeChannel(address, "admin"))) {}

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::ForDirectory(const std::string& directory) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<LocalStorage> storage, LocalStorage::Open(directory));
  LS_ASSIGN_OR_RETURN(std::string address, chief::ReadAddress(*storage));
  LS_ASSIGN_OR_RETURN(std::string token, chief::ReadToken(*storage));
  return std::make_unique<AdminClient>(address, std::move(token));
}

absl::StatusOr<proto::StatusReply> AdminClient::Status(absl::Duration deadline) const {
  grpc::ClientContext context;
  Prepare(context, token_, deadline);
  proto::StatusReply reply;
  LS_RETURN_IF_ERROR(FromGrpc(stub_->Status(&context, {}, &reply)));
  return reply;
}

absl::Status AdminClient::Stop(const std::string& by, absl::Duration deadline) const {
  grpc::ClientContext context;
  Prepare(context, token_, deadline);
  proto::StopRequest request;
  request.set_by(by);
  proto::StopReply reply;
  return FromGrpc(stub_->Stop(&context, request, &reply));
}

absl::Status AdminClient::ReportExit(const proto::ExitReport& report, absl::Duration deadline) const {
  grpc::ClientContext context;
  Prepare(context, token_, deadline);
  proto::ExitReply reply;
  return FromGrpc(stub_->ReportExit(&context, report, &reply));
}

}  // namespace lockstep::cli
