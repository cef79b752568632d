// Converts the values of a job file from and to text: one reader and one writer per type of the proto, each the inverse
// of the other. A value message (Amount, WorkerRange, ByteSize, GpuMemory, google.protobuf.Duration) is written as one
// scalar.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_JOB_SCALAR_H_
#define LOCKSTEP_COMMON_JOB_SCALAR_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "protos/job.pb.h"

namespace lockstep::job {

// One scalar of the file. `quoted` distinguishes "8" from 8: numbers and booleans must not be quoted.
struct ScalarText {
  std::string text;
  bool quoted = false;
};

// True for the message types that are written as one scalar.
bool IsValueMessage(const google::protobuf::Descriptor* type);

// True for a field that holds a section of keys.
bool IsSection(const google::protobuf::FieldDescriptor* field);

// True for a field that holds a list of sections.
bool IsSectionList(const google::protobuf::FieldDescriptor* field);

// The key options of a field; default-constructed when it has none.
const Key& KeyOf(const google::protobuf::FieldDescriptor* field);

// "an integer", "one of stop, skip_step", "a time such as 10m": what is expected of a field's values.
std::string ExpectedText(const google::protobuf::FieldDescriptor* field);

// The values of an enum as they are written, without the unspecified one.
std::vector<std::string> EnumTexts(const google::protobuf::EnumDescriptor* type);

// Sets `field` of `message`, or appends to it if it is repeated, from one scalar, and checks it against the limits of
// its Key. InvalidArgument says what was expected and what was found, without the place.
absl::Status SetScalar(const ScalarText& scalar, const google::protobuf::FieldDescriptor* field,
                       google::protobuf::Message* message);

// The value of a field that is set, as SetScalar reads it; lists as "[a, b]", strings quoted where YAML needs it.
// REQUIRES: the field is no section.
std::string FieldText(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field);

// True for 64 lower-case hexadecimal digits.
bool IsHash(absl::string_view text);

// True when the field is set, or has elements if it is repeated.
bool IsSet(const google::protobuf::Message& message, const google::protobuf::FieldDescriptor* field);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_SCALAR_H_
