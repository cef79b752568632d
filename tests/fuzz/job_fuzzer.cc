// Job files. What is accepted resolves to a job file of its own, equal to itself.
#include <google/protobuf/util/message_differencer.h>

#include "common/job/job.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto spec = lockstep::ParseJob(lockstep::fuzz::Text(data, size), "/jobs/job.yaml");
  if (!spec.ok()) {
    LS_CHECK(!spec.status().message().empty(), "a refusal says why");
    return 0;
  }
  const auto again = lockstep::ParseJob(lockstep::ResolvedYaml(*spec), "/jobs/job.yaml");
  LS_CHECK(again.ok() && google::protobuf::util::MessageDifferencer::Equals(*spec, *again),
           "a resolved job is a job file of its own");
  return 0;
}
