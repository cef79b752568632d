// Files of JSON lines to which chiefs append and which are read back as one sequence: stats/history, stats/timeline,
// logs/chief. Each chief appends to files of its own, named "term-000007-000002.jsonl" after its term and their order.
// The oldest files are removed once there are too many. A killed chief may leave half a line at the end of a file.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_STATS_LINE_FILES_H_
#define LOCKSTEP_CHIEF_STATS_LINE_FILES_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/storage/storage.h"
#include "google/protobuf/message.h"

namespace lockstep::chief {

// Formats a message as one line of JSON with its newline. Fields with default values are left out.
std::string JsonLine(const google::protobuf::Message& message);

class LineFiles {
 public:
  struct Limits {
    uint64_t file_bytes = 4 << 20;  // a file of this length is followed by another
    size_t files = 16;              // older ones are removed
  };

  // `storage` is not owned. `term`: the chief's.
  LineFiles(Storage& storage, std::string folder, int64_t term, Limits limits)
      : storage_(storage), folder_(std::move(folder)), term_(term), limits_(limits) {}

  // Appends whole lines durably. Codes of the storage; after an error, call again with the same lines, which begins
  // another file. REQUIRES: the folder exists.
  absl::Status Append(absl::string_view lines);

 private:
  absl::Status Begin();
  absl::Status RemoveOldest();

  Storage& storage_;
  const std::string folder_;
  const int64_t term_;
  const Limits limits_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;  // of file_
  int64_t number_ = 0;  // of file_, among those of this chief
};

// Reads a folder of such files repeatedly, and of each file only the new part.
class LineReader {
 public:
  // Receives a line without its newline. Returns false if it is unreadable.
  using Take = std::function<bool(absl::string_view line)>;

  explicit LineReader(std::string folder) : folder_(std::move(folder)) {}

  // Passes every new whole line to `take`, in the order of the files' names. NotFound: there is no such folder (yet).
  // Codes of the storage; the next call continues where this one stopped.
  absl::Status ReadNew(const Storage& storage, const Take& take);

  // The number of unreadable lines so far.
  int damaged() const { return damaged_; }
  // The number of files that end in the middle of a line: it is being written, or its chief was killed.
  int unfinished() const { return static_cast<int>(unfinished_.size()); }

 private:
  absl::Status ReadNewOf(const Storage& storage, const DirectoryEntry& entry, const Take& take);

  const std::string folder_;
  std::map<std::string, uint64_t> read_;  // bytes, by file
  std::set<std::string> unfinished_;
  int damaged_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STATS_LINE_FILES_H_
