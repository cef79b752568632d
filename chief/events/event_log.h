// Collects in memory the records of training that a chief writes for TensorBoard (docs/formats/events.md).
//
// Threading: thread-compatible; never blocks.
#ifndef LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_
#define LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/events/event_record.h"

namespace lockstep::chief {

class EventLog {
 public:
  // Adds the values of one step, the loss first. The first step of this chief, and a step that is not later than the
  // previous one (training went back), are preceded by a mark: readers then drop what they have of that step and later
  // ones.
  void Trained(absl::Time now, int64_t step, const Scalars& values);
  // Adds values that were measured of the state after `step`, or up to it.
  void Measured(absl::Time now, int64_t step, const Scalars& values);
  // Adds a text about `step`, for the Text tab.
  void Noted(absl::Time now, int64_t step, absl::string_view tag, absl::string_view markdown);
  // Adds histograms of the state after `step`, by tag.
  void Counted(absl::Time now, int64_t step,
               const std::vector<std::pair<std::string, tensorboard::HistogramProto>>& histograms);
  // A checkpoint was published.
  void Published(absl::Time now, int64_t step, absl::string_view path);

  // The records since the last call; empty if there are none. What exceeds 16 MiB between two calls is dropped, so a
  // storage that hangs costs points of a curve instead of memory; the next step is then marked like the first one.
  std::string Take() { return std::exchange(records_, ""); }

 private:
  void Add(const std::string& record);

  std::string records_;
  std::optional<int64_t> last_step_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_
