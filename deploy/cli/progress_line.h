// Shows the progress of long work in one line of a terminal; nothing if the output is a file or a pipe.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_DEPLOY_CLI_PROGRESS_LINE_H_
#define LOCKSTEP_DEPLOY_CLI_PROGRESS_LINE_H_

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "common/clock/clock.h"

namespace lockstep::cli {

class ProgressLine {
 public:
  // `total`: bytes to process. Writes to stderr if that is a terminal.
  ProgressLine(std::string what, uint64_t total);
  // For tests. `out` and `clock` are not owned; nothing is written unless `shown`.
  ProgressLine(std::string what, uint64_t total, std::ostream& out, const Clock& clock, bool shown);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();  // removes the line

  // `bytes` more are done. The line changes at most five times a second.
  void Advance(uint64_t bytes);

 private:
  const std::string what_;
  const uint64_t total_;
  std::ostream& out_;
  const Clock& clock_;
  const bool shown_;
  uint64_t done_ = 0;
  bool drawn_ = false;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_PROGRESS_LINE_H_
