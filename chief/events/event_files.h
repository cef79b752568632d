// Writes the files in events/, which TensorBoard reads in the order of their names (docs/formats/events.md). A chief
// continues only files of its own, so a torn tail stays where it is and hides nothing that came later.
//
// Invariants
//   * A new file sorts behind all existing ones, whatever the clocks of machines say.
//   * The file of a metagraph is complete or does not exist, and is written once.
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_EVENTS_EVENT_FILES_H_
#define LOCKSTEP_CHIEF_EVENTS_EVENT_FILES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/term/term_claim.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

class EventFiles {
 public:
  // `storage` is not owned. `process` names this chief in file names: "<host>.<pid>.<term>". A file of `file_bytes` is
  // followed by another.
  EventFiles(Storage& storage, std::string process, uint64_t file_bytes)
      : storage_(storage), process_(std::move(process)), file_bytes_(file_bytes) {}

  // Whether the next Append begins a file.
  bool NeedsFile() const { return file_ == nullptr || bytes_ >= file_bytes_; }
  // Appends whole records durably. Codes of the storage; after an error, call again with the same records and any newer
  // ones behind them, which begins another file. If the storage may have kept what it refused, that file tells readers
  // from which step on to drop it. REQUIRES: if NeedsFile(), the folder exists.
  absl::Status Append(absl::Time now, absl::string_view records);

 private:
  absl::Status Begin(absl::Time now, absl::string_view records);

  Storage& storage_;
  const std::string process_;
  const uint64_t file_bytes_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;      // of file_
  int64_t seconds_ = 0;     // the time in the name of the newest file
  bool maybe_told_ = true;  // an earlier file, of this or another chief, may have the next steps already
};

// Stores the events of a metagraph, which `make_records` returns, in a file of their own, unless that file exists.
// Codes of the storage; after an error the file is complete or does not exist.
absl::Status StoreGraphEvents(TermHold& hold, absl::Time now, absl::string_view fingerprint,
                              const std::function<std::string()>& make_records);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_FILES_H_
