// The place of a job in an S3 bucket: s3://bucket/prefix.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_URL_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_URL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

struct S3Url {
  std::string bucket;
  std::string prefix;  // no '/' at either end; "": the bucket's root

  friend bool operator==(const S3Url&, const S3Url&) = default;
};

// Whether `text` is meant as an S3 URL: it begins with "s3:".
bool IsS3Url(absl::string_view text);

// Whether `text` is a URL of any kind: a scheme and "://". A path that looks so begins with "./".
bool IsUrl(absl::string_view text);

// One '/' at the end is ignored. InvalidArgument: the message says which part is wrong and gives an example.
absl::StatusOr<S3Url> ParseS3Url(absl::string_view text);

// Whether a job can be kept there, as far as the text tells. InvalidArgument for an S3 URL that ParseS3Url refuses, and
// for a URL of another kind, for example gs://bucket/prefix: as a path it would be a directory of this machine, "gs:".
absl::Status CheckPlace(absl::string_view place);

std::string ToString(const S3Url& url);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_URL_H_
