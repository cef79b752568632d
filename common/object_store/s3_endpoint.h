// Derives the server of a bucket and the form of its URLs from the settings. Pure.
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

// Uses path-style URLs (https://host/bucket/key) when an endpoint is set, or when the bucket's name has dots, which
// AWS's certificates do not cover; else virtual-hosted URLs (https://bucket.host/key). `path_style` of the settings
// overrides this. InvalidArgument when the endpoint is no address.
absl::StatusOr<S3Endpoint> MakeS3Endpoint(const S3Settings& settings, absl::string_view bucket);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_ENDPOINT_H_
