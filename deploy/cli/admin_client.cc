#include "deploy/cli/admin_client.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/term/token.h"
#include "common/checkpoint_format/naming.h"
#include "common/job_place/job_place.h"
#include "common/net/chief_address.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kBucketPatience = absl::Seconds(10);

void SetDeadline(grpc::ClientContext& context, absl::Duration deadline) {
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(deadline));
}

}  // namespace

AdminClient::AdminClient(const std::string& address, const CallerKey& key, bool of_directory)
    : address_(address),
      of_directory_(of_directory),
      chief_(MakeChiefChannel(address, "admin", key)),
      stub_(proto::Admin::NewStub(chief_.channel)) {}

absl::Status AdminClient::Explain(const grpc::Status& status) const {
  if (status.ok() || !*chief_.stranger) return FromGrpc(status);
  return NotTheChief(address_, of_directory_);
}

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::ForBucket(const std::string& url,
                                                                    const std::string& address_file) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(url, kBucketPatience));
  std::string address;
  if (address_file.empty()) {
    LS_ASSIGN_OR_RETURN(address, ReadAddressInLog(*place->bucket()));
  } else {
    const std::string folder(ParentPath(address_file));
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> local, LocalStorage::Open(folder.empty() ? "." : folder));
    LS_ASSIGN_OR_RETURN(address, ReadChiefAddress(*local, BaseName(address_file), BaseName(layout::kLock)));
  }
  LS_ASSIGN_OR_RETURN(const std::string token, chief::ReadToken(place->storage()));
  LS_ASSIGN_OR_RETURN(const CallerKey key, CallerKeyOf(token, Role::kAdmin));
  return std::make_unique<AdminClient>(address, key, /*of_directory=*/true);
}

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::ForDirectory(const std::string& directory,
                                                                       const std::string& address_file) {
  if (IsInBucket(directory)) return ForBucket(directory, address_file);
  LS_ASSIGN_OR_RETURN(std::unique_ptr<LocalStorage> storage, LocalStorage::Open(directory));
  LS_ASSIGN_OR_RETURN(const std::string address, address_file.empty()
                                                     ? chief::ReadAddress(*storage)
                                                     : ReadChiefAddress(*storage, address_file, layout::kLock));
  LS_ASSIGN_OR_RETURN(const std::string token, chief::ReadToken(*storage));
  LS_ASSIGN_OR_RETURN(const CallerKey key, CallerKeyOf(token, Role::kAdmin));
  return std::make_unique<AdminClient>(address, key, /*of_directory=*/true);
}

absl::StatusOr<proto::StatusReply> AdminClient::Status(absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::StatusReply reply;
  LS_RETURN_IF_ERROR(Explain(stub_->Status(&context, {}, &reply)));
  return reply;
}

absl::Status AdminClient::Stop(const std::string& by, absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::StopRequest request;
  request.set_by(by);
  proto::StopReply reply;
  return Explain(stub_->Stop(&context, request, &reply));
}

absl::StatusOr<proto::DrainReply> AdminClient::Drain(const proto::DrainRequest& request,
                                                     absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::DrainReply reply;
  LS_RETURN_IF_ERROR(Explain(stub_->Drain(&context, request, &reply)));
  return reply;
}

absl::StatusOr<std::string> AdminClient::ChangeCheckpoint(const proto::ChangeCheckpointRequest& request,
                                                          absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::ChangeCheckpointReply reply;
  LS_RETURN_IF_ERROR(Explain(stub_->ChangeCheckpoint(&context, request, &reply)));
  return reply.text();
}

absl::Status AdminClient::ReportExit(const proto::ExitReport& report, absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::ExitReply reply;
  return Explain(stub_->ReportExit(&context, report, &reply));
}

}  // namespace lockstep::cli
