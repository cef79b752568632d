// The files in events/, which TensorBoard reads in the order of their names (docs/formats/events.md). A chief continues
// only files of its own, so a torn tail stays where it is and hides nothing that came later.
//
// Invariants
//   * A file that is begun sorts behind every other that is there then, whatever the clocks of machines say.
//   * The file of a metagraph is there whole or not at all, and is written once.
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
  // `storage` is not owned. `process` names this chief in the names of its files: "<host>.<pid>.<term>". A file that
  // has `file_bytes` is followed by another.
  EventFiles(Storage& storage, std::string process, uint64_t file_bytes)
      : storage_(storage), process_(std::move(process)), file_bytes_(file_bytes) {}

  // Whether the next Append begins a file.
  bool NeedsFile() const { return file_ == nullptr || bytes_ >= file_bytes_; }
  // Makes whole records durable. Codes of the storage; the next call after an error, with the same records again and
  // more behind them, begins another file. Where the storage may have kept what it refused, that file says from which
  // step on readers drop it. REQUIRES: where it begins a file, the folder is there.
  absl::Status Append(absl::Time now, absl::string_view records);

 private:
  absl::Status Begin(absl::Time now, absl::string_view records);

  Storage& storage_;
  const std::string process_;
  const uint64_t file_bytes_;
  std::unique_ptr<WritableFile> file_;
  uint64_t bytes_ = 0;      // of file_
  int64_t seconds_ = 0;     // in the name of the newest file
  bool maybe_told_ = true;  // steps that come next may stand in an earlier file: of another chief, or of this one
};

// Stores a metagraph's events, of which `make_records` gives the records, in a file of their own, where it is not there
// yet. Codes of the storage; after an error nothing is there, or all of it.
absl::Status StoreGraphEvents(TermHold& hold, absl::Time now, absl::string_view fingerprint,
                              const std::function<std::string()>& make_records);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_FILES_H_
