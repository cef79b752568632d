// YAML text -> the messages of a job, by walking the descriptors of protos/job.proto. Knows keys, types and limits;
// rules across keys and defaults are resolve.h's. Records the place of each key, so that later checks can name it.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_JOB_YAML_READER_H_
#define LOCKSTEP_COMMON_JOB_YAML_READER_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/job/job.h"
#include "common/job/mistakes.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "protos/job.pb.h"

namespace lockstep::job {

using Places = JobPlaces;

// Reads the whole text of a job file into `spec`; whatever cannot be read goes to `mistakes`.
void ReadYaml(absl::string_view text, Places& places, JobSpec& spec, JobMistakes& mistakes);

// Applies one "a.b.c=value" of --set. A key that the file gives is replaced, a list as a whole, a section key by key;
// `null` removes what was given.
void ReadOverride(absl::string_view assignment, Places& places, JobSpec& spec, JobMistakes& mistakes);

// Sets `field` of `message` from YAML text of our own (the defaults of job.proto).
absl::Status ReadValue(const std::string& yaml, const google::protobuf::FieldDescriptor* field,
                       google::protobuf::Message* message);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_YAML_READER_H_
