// What a chief tells TensorBoard of training (docs/formats/events.md), gathered in memory as records.
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
  // What training says of one step, the loss first. The first step of this chief, and one that is not later than the
  // step before (training went back), are preceded by the mark at which readers drop what they have of that step and
  // later ones.
  void Trained(absl::Time now, int64_t step, const Scalars& values);
  // What was measured of the state after `step`, or up to it.
  void Measured(absl::Time now, int64_t step, const Scalars& values);
  // What people read of `step` in the Text tab.
  void Noted(absl::Time now, int64_t step, absl::string_view tag, absl::string_view markdown);
  // Histograms of the state after `step`, by tag.
  void Counted(absl::Time now, int64_t step,
               const std::vector<std::pair<std::string, tensorboard::HistogramProto>>& histograms);
  // A checkpoint was published.
  void Published(absl::Time now, int64_t step, absl::string_view path);

  // The records since the last call; empty when there are none. What exceeds 16 MiB between two calls is dropped: a
  // storage that stands still costs points of a curve, not memory. The next step is then marked as the first one is.
  std::string Take() { return std::exchange(records_, ""); }

 private:
  void Add(const std::string& record);

  std::string records_;
  std::optional<int64_t> last_step_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_LOG_H_
