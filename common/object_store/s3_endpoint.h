// Which server a bucket is asked from, and under which names: pure.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_ENDPOINT_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_ENDPOINT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/object_store/aws_profile.h"

namespace lockstep {

struct S3Endpoint {
  std::string scheme;  // "https"
  std::string host;    // with the port, when it is not the scheme's
  std::string base;    // path before every key: "/bucket" or ""
  std::string region;
};

// By path (https://host/bucket/key) when an endpoint is set, or when the bucket's name has dots, which certificates of
// AWS do not cover; by name (https://bucket.host/key) otherwise. `path_style` of the settings overrides both.
// InvalidArgument: the endpoint is no address.
absl::StatusOr<S3Endpoint> MakeS3Endpoint(const S3Settings& settings, absl::string_view bucket);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_ENDPOINT_H_
