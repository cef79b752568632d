#include "deploy/cli/admin_client.h"

#include <unistd.h>

#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/term/token.h"
#include "common/checkpoint_format/naming.h"
#include "common/job_place/job_place.h"
#include "common/net/chief_address.h"
#include "common/net/chief_channel.h"
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

AdminClient::AdminClient(const std::string& address, const CallerKey& key)
    : address_(address), stub_(proto::Admin::NewStub(MakeChiefChannel(address, "admin", key).channel)) {}

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::ForBucket(const std::string& url,
                                                                    const std::string& address_file) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<JobPlace> place, JobPlace::Open(url, kBucketPatience));
  std::string address;
  if (address_file.empty()) {
    LS_ASSIGN_OR_RETURN(address, ReadAddressInLog(*place->bucket()));
  } else {
    const std::string folder(ParentPath(address_file));
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<LocalStorage> local, LocalStorage::Open(folder.empty() ? "." : folder));
    LS_ASSIGN_OR_RETURN(const ChiefAddress found,
                        ReadChiefAddress(*local, BaseName(address_file), BaseName(layout::kLock)));
    address = found.address;
  }
  LS_ASSIGN_OR_RETURN(const std::string token, chief::ReadToken(place->storage()));
  LS_ASSIGN_OR_RETURN(const CallerKey key, CallerKeyOf(token, Role::kAdmin));
  return std::make_unique<AdminClient>(address, key);
}

absl::StatusOr<std::unique_ptr<AdminClient>> AdminClient::ForDirectory(const std::string& directory,
                                                                       const std::string& address_file) {
  if (IsInBucket(directory)) return ForBucket(directory, address_file);
  LS_ASSIGN_OR_RETURN(std::unique_ptr<LocalStorage> storage, LocalStorage::Open(directory));
  LS_ASSIGN_OR_RETURN(const ChiefAddress address, address_file.empty()
                                                      ? chief::ReadAddress(*storage)
                                                      : ReadChiefAddress(*storage, address_file, layout::kLock));
  LS_ASSIGN_OR_RETURN(const std::string token, chief::ReadToken(*storage));
  LS_ASSIGN_OR_RETURN(const CallerKey key, CallerKeyOf(token, Role::kAdmin));
  return std::make_unique<AdminClient>(address.address, key);
}

absl::StatusOr<proto::StatusReply> AdminClient::Status(absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::StatusReply reply;
  LS_RETURN_IF_ERROR(FromGrpc(stub_->Status(&context, {}, &reply)));
  return reply;
}

absl::Status AdminClient::Stop(const std::string& by, absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::StopRequest request;
  request.set_by(by);
  proto::StopReply reply;
  return FromGrpc(stub_->Stop(&context, request, &reply));
}

absl::StatusOr<proto::DrainReply> AdminClient::Drain(const proto::DrainRequest& request,
                                                     absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::DrainReply reply;
  LS_RETURN_IF_ERROR(FromGrpc(stub_->Drain(&context, request, &reply)));
  return reply;
}

absl::StatusOr<std::string> AdminClient::ChangeCheckpoint(const proto::ChangeCheckpointRequest& request,
                                                          absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::ChangeCheckpointReply reply;
  LS_RETURN_IF_ERROR(FromGrpc(stub_->ChangeCheckpoint(&context, request, &reply)));
  return reply.text();
}

absl::Status AdminClient::ReportExit(const proto::ExitReport& report, absl::Duration deadline) const {
  grpc::ClientContext context;
  SetDeadline(context, deadline);
  proto::ExitReply reply;
  return FromGrpc(stub_->ReportExit(&context, report, &reply));
}

}  // namespace lockstep::cli
