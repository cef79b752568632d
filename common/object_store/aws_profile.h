// Reads the configuration of AWS's own tools: environment variables and the shared files ~/.aws/config and
// ~/.aws/credentials. It is read once at start; a bucket that `aws s3 ls` reaches needs no further settings.
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
// Parses a shared file; InvalidArgument names the line.
absl::StatusOr<AwsSections> ParseAwsFile(absl::string_view text, absl::string_view path);

// The settings of the profile AWS_PROFILE, or of "default". Settings in AWS_SHARED_CREDENTIALS_FILE
// (~/.aws/credentials) override those in AWS_CONFIG_FILE (~/.aws/config). Empty when there are no files.
// InvalidArgument when a file cannot be read, or AWS_PROFILE names a profile that neither file has.
absl::StatusOr<std::map<std::string, std::string>> ReadAwsProfile(const Environment& environment);

// The location of the bucket and how to reach it.
struct S3Settings {
  std::string region;              // AWS_REGION, AWS_DEFAULT_REGION, or `region` of the profile; "": not set
  std::string endpoint;            // AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, or `endpoint_url`; "": AWS itself
  std::string ca_bundle;           // AWS_CA_BUNDLE or `ca_bundle`; "": the system's certificates
  std::optional<bool> path_style;  // LOCKSTEP_S3_ADDRESSING or `s3.addressing_style`: path, virtual or auto
};
// InvalidArgument for an invalid value, and as ReadAwsProfile.
absl::StatusOr<S3Settings> ReadS3Settings(const Environment& environment);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_AWS_PROFILE_H_
