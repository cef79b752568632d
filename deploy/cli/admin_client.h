// Asks a running chief how it is, to stop, to drain workers or to change a checkpoint: what the commands need of the
// Admin service.
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
  // `of_directory`: the key is of the directory that gave the address, so that it is right.
  AdminClient(const std::string& address, const CallerKey& key, bool of_directory = false);

  // Where the chief of a job's directory listens, with the directory's token. NotFound when no chief ever ran there.
  // With `address_file`, a path below the directory, the chief whose address stands there. Of a job in a bucket,
  // s3://BUCKET/PREFIX, the log gives the address, or `address_file` does, which is a path of this machine then.
  static absl::StatusOr<std::unique_ptr<AdminClient>> ForDirectory(const std::string& directory,
                                                                   const std::string& address_file = "");

  // Unavailable when the chief does not answer, also when another program has its port; Unauthenticated when that may
  // be since the token is of another job; PermissionDenied where the token's role is too low.
  absl::StatusOr<proto::StatusReply> Status(absl::Duration deadline) const;
  absl::Status Stop(const std::string& by, absl::Duration deadline) const;
  // InvalidArgument: refused, with the reason.
  absl::StatusOr<proto::DrainReply> Drain(const proto::DrainRequest& request, absl::Duration deadline) const;
  // FailedPrecondition: it is not done, with the reason. NotFound: there is no such checkpoint.
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
