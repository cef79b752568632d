// Protos as JSON that people and scripts like to read: fields under their proto names in their order, every field
// present, 64-bit integers as numbers, NaN and infinite doubles as "NaN" and "Infinity". Protobuf's own printer writes
// 64-bit integers as strings; its reader accepts both.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_CHECKPOINT_FORMAT_PROTO_JSON_H_
#define LOCKSTEP_COMMON_CHECKPOINT_FORMAT_PROTO_JSON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace lockstep {

// Two spaces of indentation and a final newline. REQUIRES: no maps, oneofs of scalars, bytes or enums in the message.
std::string ToJson(const google::protobuf::Message& message);

// Any message, with the fields that are set: protobuf's own form, but 64-bit integers as numbers too.
std::string ToSparseJson(const google::protobuf::Message& message);

// Replaces `message`. DataLoss on malformed JSON, unknown or duplicate fields; `file` is used in messages.
absl::Status FromJson(absl::string_view json, absl::string_view file, google::protobuf::Message* message);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_CHECKPOINT_FORMAT_PROTO_JSON_H_
