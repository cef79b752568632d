// Writes a TensorBoard event file (docs/formats/events.md). One file per start of a chief; a file is never continued,
// so a torn tail stays where it is and hides nothing that came later.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_EVENTS_EVENT_WRITER_H_
#define LOCKSTEP_CHIEF_EVENTS_EVENT_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// One record of a TFRecord file: u64 length, masked CRC-32C of it, the data, masked CRC-32C of the data.
std::string EncodeEventRecord(absl::string_view data);

// "events.out.tfevents.<10-digit seconds>.<host>.<pid>.<uid>"
std::string EventFileName(absl::Time now, absl::string_view host, int64_t pid, int64_t uid);

class EventWriter {
 public:
  // Starts events/`name` with the version record. AlreadyExists when that name is taken: choose another uid.
  static absl::StatusOr<EventWriter> Create(Storage& storage, absl::string_view name, absl::Time now);

  // Training goes on from `step`: readers drop what earlier files say about later steps.
  absl::Status Start(absl::Time now, int64_t step);
  // Values of one step, by tag, e.g. {"loss", 0.31}.
  absl::Status Scalars(absl::Time now, int64_t step, const std::vector<std::pair<std::string, float>>& values);
  // A checkpoint was published.
  absl::Status Checkpoint(absl::Time now, int64_t step, absl::string_view path);

  // Makes everything written so far durable.
  absl::Status Sync();

 private:
  explicit EventWriter(std::unique_ptr<WritableFile> file) : file_(std::move(file)) {}

  std::unique_ptr<WritableFile> file_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_WRITER_H_
