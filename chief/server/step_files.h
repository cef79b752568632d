// Files of one folder that are named after steps, "NAME-step-1200...": those of the newest steps stay, up to a number,
// so that a job that runs for months does not fill its directory.
//
// Invariants
//   * No other file and no directory is removed.
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_SERVER_STEP_FILES_H_
#define LOCKSTEP_CHIEF_SERVER_STEP_FILES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

class StepFiles {
 public:
  // `storage` outlives this. REQUIRES: `most` is at least 1.
  StepFiles(Storage& storage, std::string folder, size_t most)
      : storage_(storage), folder_(std::move(folder)), most_(most) {}

  // One was written. Where there are more than `most` now, an eighth of them goes, the oldest steps first. Codes of the
  // storage.
  absl::Status Written();

 private:
  Storage& storage_;
  const std::string folder_;
  const size_t most_;
  std::optional<size_t> count_;  // at most so many are there; none: not looked yet
};

// 1200 of "tell-step-1200.txt"; nullopt of a name without a step.
std::optional<int64_t> StepInName(absl::string_view name);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_STEP_FILES_H_
