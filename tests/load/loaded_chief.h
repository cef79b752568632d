// A chief process for a crowd: the shipped `lockstep chief` with a real job, and measurements of its cost.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_TESTS_LOAD_LOADED_CHIEF_H_
#define LOCKSTEP_TESTS_LOAD_LOADED_CHIEF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "protos/session.pb.h"
#include "tests/e2e/local_job.h"

namespace lockstep::load {

// The resource usage of a process, according to the kernel.
struct Usage {
  double cpu_seconds = 0;
  uint64_t resident_kb = 0;
  uint64_t peak_kb = 0;
  uint64_t threads = 0;
  uint64_t descriptors = 0;
};

class LoadedChief {
 public:
  // A job of one logical shard per worker below `directory`, which is emptied. `settings`: further key=value.
  LoadedChief(std::string directory, size_t workers, std::vector<std::string> settings);
  ~LoadedChief();

  // Starts the chief and blocks until it listens. Throws if it does not.
  void Start();
  // Sends SIGKILL and waits for its end.
  void Kill();

  const std::string& directory() const { return directory_; }
  Usage Now() const;
  // The chief's status; nullopt if it does not answer.
  std::optional<proto::StatusReply> Status() const;
  // Runs `lockstep status --json` and returns its duration, or an error unless it exits with 0.
  absl::StatusOr<absl::Duration> TimeStatusCommand(std::string* output) const;
  std::string Log() const;

 private:
  const std::string directory_;
  const size_t workers_;
  const std::vector<std::string> settings_;
  std::optional<e2e::Process> process_;
  uint64_t starts_ = 0;
};

}  // namespace lockstep::load

#endif  // LOCKSTEP_TESTS_LOAD_LOADED_CHIEF_H_
