// Small control files that carry a digest of themselves, so that a reader detects damage. A sealed JSON file is a
// message whose last field is `string sha256`: the SHA-256 of the file's bytes with that value replaced by 64 zeros. A
// sealed text ends with a line "sha256 <hex>" over the bytes before it.
//
// Files without a digest, which earlier programs wrote, are accepted; their readers have to expect arbitrary content.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SEALED_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SEALED_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// The file's bytes; sets `message.sha256` to their digest. REQUIRES: a text field `sha256`, the last one.
std::string SealJson(google::protobuf::Message* message);

// Replaces `message`, whose sha256 is empty when the file carries none. FailedPrecondition when its `format_version` is
// above `newest_format`; DataLoss when it is malformed or does not have the digest that it carries. `file` is used in
// messages.
absl::Status ReadSealedJson(absl::string_view json, absl::string_view file, int newest_format,
                            google::protobuf::Message* message);

// `text` (whole lines) and its digest.
std::string SealText(absl::string_view text);

// The lines before the digest; all lines when there is no digest line. DataLoss when the digest differs.
absl::StatusOr<std::string> ReadSealedText(absl::string_view sealed, absl::string_view file);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_SEALED_H_
