// Interprets an answer of S3. Pure, so that every code can be tested without a server.
//
// Threading: immutable; all functions are thread-safe.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_S3_ANSWER_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_S3_ANSWER_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/object_store/http_transport.h"

namespace lockstep {

struct S3Verdict {
  absl::Status status;
  bool again = false;       // the request may be repeated
  bool other_keys = false;  // repeat it with newly fetched keys
};

// `conditional`: the request was a Put with a condition. `place` begins the message. REQUIRES: the code is not 2xx, or
// the body is an error.
S3Verdict JudgeS3Answer(const HttpAnswer& answer, bool conditional, absl::string_view place);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_S3_ANSWER_H_
