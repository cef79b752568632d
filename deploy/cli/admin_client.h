// A client of the chief's Admin service, for commands: asks for the status, stops the job, drains workers, changes
// checkpoints, reports exits.
//
// Threading: thread-safe; every call blocks, for `deadline` at most.
#ifndef LOCKSTEP_DEPLOY_CLI_ADMIN_CLIENT_H_
#define LOCKSTEP_DEPLOY_CLI_ADMIN_CLIENT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/chief_channel.h"
#include "protos/session.grpc.pb.h"

namespace lockstep::cli {

class AdminClient {
 public:
  // `of_directory`: address and key come from the same directory, so the key must be right.
  AdminClient(const std::string& address, const CallerKey& key, bool of_directory = false);

  // A client for the chief of a job's directory, with the directory's token. NotFound: no chief ever ran there.
  // `address_file`, if not empty, is a path below the directory with the address of the wanted chief. For a job in a
  // bucket, s3://BUCKET/PREFIX, the address comes from the log, or from `address_file`, then a path of this machine.
  static absl::StatusOr<std::unique_ptr<AdminClient>> ForDirectory(const std::string& directory,
                                                                   const std::string& address_file = "");

  // Unavailable: the chief does not answer, or another program has its port. Unauthenticated: the token may be of
  // another job. PermissionDenied: the token's role is too low. All calls return these.
  absl::StatusOr<proto::StatusReply> Status(absl::Duration deadline) const;
  absl::Status Stop(const std::string& by, absl::Duration deadline) const;
  // InvalidArgument, with the reason: the request was refused.
  absl::StatusOr<proto::DrainReply> Drain(const proto::DrainRequest& request, absl::Duration deadline) const;
  // FailedPrecondition, with the reason: nothing was changed. NotFound: there is no such checkpoint.
  absl::StatusOr<std::string> ChangeCheckpoint(const proto::ChangeCheckpointRequest& request,
                                               absl::Duration deadline) const;
  absl::Status ReportExit(const proto::ExitReport& report, absl::Duration deadline) const;

  const std::string& address() const { return address_; }

 private:
  static absl::StatusOr<std::unique_ptr<AdminClient>> ForBucket(const std::string& url,
                                                                const std::string& address_file);

  absl::Status Explain(const grpc::Status& status) const;

  const std::string address_;
  const bool of_directory_;
  const ChiefChannel chief_;
  const std::unique_ptr<proto::Admin::Stub> stub_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_ADMIN_CLIENT_H_
