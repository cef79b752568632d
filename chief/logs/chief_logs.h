// What the chiefs of a job said, as they kept it in logs/chief/*.jsonl (docs/formats/log.md): the lines of all of them,
// level info and above, the oldest first. A chief that runs adds to it every two seconds.
//
// Threading: thread-compatible; reading blocks on the storage.
#ifndef LOCKSTEP_CHIEF_LOGS_CHIEF_LOGS_H_
#define LOCKSTEP_CHIEF_LOGS_CHIEF_LOGS_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/stats/line_files.h"
#include "common/log/record.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

inline constexpr char kChiefLogFolder[] = "logs/chief";

using ChiefLogLine = LogRecord;

// Reads them again and again, each time only what is new.
class ChiefLogReader {
 public:
  ChiefLogReader() : lines_(kChiefLogFolder) {}

  // Gives every line that was not given yet to `take`. OK without lines, also where no chief kept any. Codes of the
  // storage; the next call goes on where this one stopped.
  absl::Status ReadNew(const Storage& storage, const std::function<void(ChiefLogLine)>& take);
  // Lines that did not read, so far.
  int damaged() const { return lines_.damaged(); }

 private:
  LineReader lines_;
};

// The newest `lines` of at least `level`. Codes of the storage; nothing where no chief kept any.
absl::StatusOr<std::vector<ChiefLogLine>> ReadChiefLogs(const Storage& storage, size_t lines,
                                                        LogLevel level = LogLevel::info);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_LOGS_CHIEF_LOGS_H_
