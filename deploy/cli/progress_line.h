// One line of a terminal that says how far a long piece of work is. Where nobody looks (a file, a pipe), nothing.
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
  // `total`: bytes to do. On stderr, when that is a terminal.
  ProgressLine(std::string what, uint64_t total);
  // For tests. `out` and `clock` are not owned; `out` is written to when `shown`.
  ProgressLine(std::string what, uint64_t total, std::ostream& out, const Clock& clock, bool shown);
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine();  // takes the line away

  // So many bytes more are done. The line changes five times a second at most.
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
