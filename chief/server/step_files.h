// Limits the files of one folder that are named after steps ("NAME-step-1200..."): only those of the newest steps stay,
// so that a job that runs for months does not fill its directory.
//
// Invariants
//   * Other files, and directories, are never removed.
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

  // A file was written. If there are more than `most` now, removes the excess and another eighth of `most`, oldest
  // steps first. Returns codes of the storage.
  absl::Status Written();

 private:
  Storage& storage_;
  const std::string folder_;
  const size_t most_;
  std::optional<size_t> count_;  // an upper bound of the number of files; nullopt: not listed yet
};

// The step in a file name, such as 1200 in "tell-step-1200.txt"; nullopt if it has none.
std::optional<int64_t> StepInName(absl::string_view name);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_STEP_FILES_H_
