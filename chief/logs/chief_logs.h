// Reads the logs of a job's chiefs, which they keep in logs/chief/*.jsonl (docs/formats/log.md): lines of level info
// and above, oldest first. A running chief adds to them every two seconds.
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

// Reads the logs repeatedly, each time only the new lines.
class ChiefLogReader {
 public:
  ChiefLogReader() : lines_(kChiefLogFolder) {}

  // Passes every new line to `take`. OK without lines, also if no chief kept any. Codes of the storage; the next call
  // continues where this one stopped.
  absl::Status ReadNew(const Storage& storage, const std::function<void(ChiefLogLine)>& take);
  // The number of unreadable lines so far.
  int damaged() const { return lines_.damaged(); }

 private:
  LineReader lines_;
};

// The newest `lines` lines of at least `level`; none if no chief kept any. Codes of the storage.
absl::StatusOr<std::vector<ChiefLogLine>> ReadChiefLogs(const Storage& storage, size_t lines,
                                                        LogLevel level = LogLevel::info);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_LOGS_CHIEF_LOGS_H_
