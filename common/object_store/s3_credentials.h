// Finds the keys of a bucket, in this order: in the environment, the shared files of AWS's tools, the container's
// endpoint (ECS, EKS), the machine's metadata (EC2, IMDSv2). Keys that expire are fetched again in time.
//
// Threading: thread-safe; a call blocks while keys are fetched.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_CREDENTIALS_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_CREDENTIALS_H_

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/object_store/aws_profile.h"
#include "common/object_store/http_transport.h"
#include "common/object_store/s3_signature.h"
#include "common/sync/mutex.h"

namespace lockstep {

class S3CredentialsSource {
 public:
  static constexpr absl::Duration kRefreshBefore = absl::Minutes(5);  // before they expire
  static constexpr absl::Duration kPause = absl::Seconds(20);         // between fetches while the keys are valid

  // `transport` reaches the metadata; it is not owned and uses no proxies. `now`: the wall clock.
  S3CredentialsSource(Environment environment, HttpTransport* transport, std::function<absl::Time()> now)
      : environment_(std::move(environment)), transport_(*transport), now_(std::move(now)) {}

  // Returns the keys. PermissionDenied when there are none; the message says where they were looked for. A failed fetch
  // is no error while the current keys are valid.
  absl::StatusOr<S3Credentials> Get();
  // Called when the server refused the current keys: the next Get fetches others.
  void Refuse();
  // The region of this machine, from its metadata; nullopt when there is none.
  std::optional<std::string> MachineRegion();

 private:
  absl::StatusOr<S3Credentials> Fetch();
  absl::StatusOr<std::optional<S3Credentials>> FromEnvironment() const;
  absl::StatusOr<std::optional<S3Credentials>> FromProfile() const;
  absl::StatusOr<std::optional<S3Credentials>> FromContainer();
  absl::StatusOr<S3Credentials> FromMachine();
  // Fetches one item of the machine's metadata.
  absl::StatusOr<std::string> Metadata(absl::string_view path);
  absl::StatusOr<std::string> Ask(const std::string& method, const std::string& url,
                                  std::map<std::string, std::string> headers);

  const Environment environment_;
  HttpTransport& transport_;
  const std::function<absl::Time()> now_;
  Mutex mutex_;
  std::optional<S3Credentials> current_ GUARDED_BY(mutex_);
  absl::Time next_fetch_ GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_CREDENTIALS_H_
