// YAML text -> the messages of a job, by walking the descriptors of protos/job.proto. Knows keys, types and limits;
// rules across keys and defaults are resolve.h's. Remembers where each key stands, so that later checks can say so too.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_JOB_YAML_READER_H_
#define LOCKSTEP_COMMON_JOB_YAML_READER_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "protos/job.pb.h"

namespace lockstep::job {

// Where keys were given, by their path: "train.optimizer.lr" -> "job.yaml:12:9" or "--set train.optimizer.lr=x".
class Places {
 public:
  explicit Places(std::string file) : file_(std::move(file)) {}

  void Set(const std::string& key, std::string place) { places_[key] = std::move(place); }
  void Erase(const std::string& key) { places_.erase(key); }

  // InvalidArgument "place: key: message"; for a key that was not given, the place is that of the nearest section
  // above it that was, or the file.
  absl::Status Error(const std::string& key, absl::string_view message) const;

  const std::string& file() const { return file_; }

 private:
  std::string file_;
  std::map<std::string, std::string> places_;
};

// Reads the whole text of a job file into `spec`. `spec` is unspecified after an error.
absl::Status ReadYaml(absl::string_view text, Places& places, JobSpec& spec);

// Applies one "a.b.c=value" of --set. A key that the file gives is replaced, a list as a whole, a section key by key;
// `null` removes what was given.
absl::Status ReadOverride(absl::string_view assignment, Places& places, JobSpec& spec);

// Sets `field` of `message` from YAML text of our own (the defaults of job.proto).
absl::Status ReadValue(const std::string& yaml, const google::protobuf::FieldDescriptor* field,
                       google::protobuf::Message* message);

}  // namespace lockstep::job

#endif  // LOCKSTEP_COMMON_JOB_YAML_READER_H_
