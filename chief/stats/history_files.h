// The files of a job's history, stats/history/*.jsonl (docs/formats/history.md): lines that chiefs append, each to
// files of its own, and that are read back as one history. The oldest files go when all together grow large.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_STATS_HISTORY_FILES_H_
#define LOCKSTEP_CHIEF_STATS_HISTORY_FILES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

inline constexpr char kHistoryFolder[] = "stats/history";

// A line as it stands in these files, with its end.
std::string HistoryLine(const WorkerInterval& interval);

class HistoryFiles {
 public:
  struct Limits {
    uint64_t file_bytes = 4 << 20;  // a file that is as long is followed by another
    size_t files = 16;              // older ones are removed
  };

  // `storage` is not owned. `term`: of the chief that appends.
  HistoryFiles(Storage& storage, int64_t term, Limits limits) : storage_(storage), term_(term), limits_(limits) {}
  HistoryFiles(Storage& storage, int64_t term) : HistoryFiles(storage, term, Limits()) {}

  // Makes whole lines durable. Codes of the storage; after an error the next call, with the same lines again, begins
  // another file. REQUIRES: the folder is there.
  absl::Status Append(absl::string_view lines);

 private:
  absl::Status Begin();
  absl::Status RemoveOldest();

  Storage& storage_;
  const int64_t term_;
  const Limits limits_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;  // of file_
  int64_t number_ = 0;  // of file_, among those of this chief
};

// All lines, in the order of their time. Lines that do not read (a chief was killed while it wrote one) are counted in
// `damaged`. NotFound: the job has no history. Codes of the storage.
absl::StatusOr<std::vector<WorkerInterval>> ReadHistory(const Storage& storage, int& damaged);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_HISTORY_FILES_H_
