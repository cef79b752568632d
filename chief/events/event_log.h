// What a chief tells TensorBoard (docs/formats/events.md): gathered in memory as records, and the file they go to. One
// file per start of a chief; a file is never continued, so a torn tail stays where it is and hides nothing that came
// later.
//
// Threading: EventLog is thread-compatible and never blocks; CreateEventFile blocks on the storage.
#ifndef LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_
#define LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// One record of a TFRecord file: u64 length, masked CRC-32C of it, the data, masked CRC-32C of the data.
std::string EncodeEventRecord(absl::string_view data);

// "events.out.tfevents.<10-digit seconds>.<host>.<pid>.<uid>"
std::string EventFileName(absl::Time now, absl::string_view host, int64_t pid, int64_t uid);

// Starts events/`name` with the version record and `records`, durably. After an error the file is removed again: a disk
// that stays full gathers no files without a record. AlreadyExists when that name is taken: choose another uid.
absl::StatusOr<std::unique_ptr<WritableFile>> CreateEventFile(Storage& storage, absl::string_view name, absl::Time now,
                                                              absl::string_view records);

class EventLog {
 public:
  // Values by tag, e.g. {"loss", 0.31}.
  using Scalars = std::vector<std::pair<std::string, double>>;

  // What training says of one step. The first step of a file, and one that is not later than the step before (training
  // went back), are preceded by the mark at which readers drop what they have of that step and later ones.
  void Trained(absl::Time now, int64_t step, const Scalars& values);
  // What an evaluation of the state after `step` says.
  void Evaluated(absl::Time now, int64_t step, const Scalars& values);
  // A checkpoint was published.
  void Published(absl::Time now, int64_t step, absl::string_view path);

  // The records since the last call; empty when there are none. What exceeds 16 MiB between two calls is dropped: a
  // storage that stands still costs points of a curve, not memory.
  std::string Take() { return std::exchange(records_, ""); }

 private:
  void Add(absl::string_view event);

  std::string records_;
  std::optional<int64_t> last_step_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_
