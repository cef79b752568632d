// Reads the curves of a job from its TensorBoard files (docs/formats/events.md), repeatedly, and of each file only the
// new part.
//
// Threading: thread-compatible; ReadNew blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WATCH_SCALAR_HISTORY_H_
#define LOCKSTEP_CHIEF_WATCH_SCALAR_HISTORY_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "chief/watch/scalar_series.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

class ScalarHistory {
 public:
  // Adds what was written since the last call. A file is read up to the first torn or damaged record. NotFound: nothing
  // was written yet. Codes of the storage; the next call continues where this one stopped.
  absl::Status ReadNew(const Storage& storage);

  // By tag: "loss", "evaluation/accuracy".
  const std::map<std::string, ScalarSeries>& series() const { return series_; }

 private:
  absl::Status ReadNewOf(const Storage& storage, const DirectoryEntry& entry);
  // Consumes complete records from the front of `bytes`. Returns the number of bytes consumed.
  size_t TakeRecords(absl::string_view bytes);
  void TakeRecord(absl::string_view data);

  std::map<std::string, ScalarSeries> series_;
  struct Progress {
    uint64_t read = 0;  // bytes of whole records
    uint64_t seen = 0;  // the file's size at that time
  };
  std::map<std::string, Progress> files_;  // by name
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WATCH_SCALAR_HISTORY_H_
