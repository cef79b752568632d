// What AWS's own tools are configured with: environment variables and the shared files ~/.aws/config and
// ~/.aws/credentials. Read once at a start, so that a bucket that `aws s3 ls` shows is reached without more settings.
//
// Threading: immutable; all functions are thread-safe. Reading blocks on the files.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_AWS_PROFILE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_AWS_PROFILE_H_

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The value of an environment variable; nullopt when it is missing or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment ProcessEnvironment();

// The sections of a shared file. A setting below another one, indented, is named "outer.inner".
using AwsSections = std::map<std::string, std::map<std::string, std::string>>;
// InvalidArgument names the line.
absl::StatusOr<AwsSections> ParseAwsFile(absl::string_view text, absl::string_view path);

// The settings of the profile AWS_PROFILE, or else of "default": those of AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials) over those of AWS_CONFIG_FILE (~/.aws/config). Empty when there are no files. InvalidArgument: a
// file cannot be read, or AWS_PROFILE names a profile that neither has.
absl::StatusOr<std::map<std::string, std::string>> ReadAwsProfile(const Environment& environment);

// Where the bucket is and how it is reached.
struct S3Settings {
  std::string region;              // AWS_REGION, AWS_DEFAULT_REGION, or `region` of the profile; "": nothing says
  std::string endpoint;            // AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or `endpoint_url`; "": AWS itself
  std::string ca_bundle;           // AWS_CA_BUNDLE or `ca_bundle`; "": the system's certificates
  std::optional<bool> path_style;  // LOCKSTEP_S3_ADDRESSING or `s3.addressing_style`: path, virtual or auto
};
// InvalidArgument: a value that is none, and those of ReadAwsProfile.
absl::StatusOr<S3Settings> ReadS3Settings(const Environment& environment);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_AWS_PROFILE_H_
