// Records what happens to a job, for people and for the page: the lines of stats/timeline (docs/formats/timeline.md).
// It sees each decision of the chief's core. No clock and no I/O inside.
//
// Threading: thread-compatible; never blocks.
#ifndef LOCKSTEP_CHIEF_TIMELINE_TIMELINE_RECORDER_H_
#define LOCKSTEP_CHIEF_TIMELINE_TIMELINE_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/core/actions.h"
#include "chief/core/coordinator_view.h"
#include "common/protocol/ids.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

inline constexpr char kTimelineFolder[] = "stats/timeline";

// The name of a phase, for people: "RUNNING".
const char* PhaseName(Phase phase);

// The name of a change, in entries and in TensorBoard's text: "lost".
const char* ChangeName(WorkerChange change);

class TimelineRecorder {
 public:
  // The most bytes that are kept between two calls of Take; entries beyond are dropped and counted.
  static constexpr size_t kMostBytes = 16 << 20;
  static constexpr size_t kLongestText = 2000;  // of an entry

  // The state of the core after a decision.
  struct Present {
    Phase phase = Phase::kAdopting;
    Generation generation;
    uint64_t agreed_step = 0;
    std::function<std::vector<std::string>()> members;  // names by rank; called if the generation changed
  };

  explicit TimelineRecorder(int64_t term) : term_(term) {}

  // The core decided these actions. `wall`, here and below: the time shown to people.
  void Saw(absl::Time wall, const std::vector<Action>& actions, const Present& present);

  // The chief started, from the checkpoint `text` of `step`, or ended.
  void ChiefStarted(absl::Time wall, int64_t step, absl::string_view text);
  void ChiefEnded(absl::Time wall, int32_t exit_code, absl::string_view reason);
  // A checkpoint was published at `path`.
  void Saved(absl::Time wall, int64_t step, absl::string_view path);
  void Evaluated(absl::Time wall, int64_t step, absl::string_view values);
  void Warned(absl::Time wall, absl::string_view text);

  // The lines since the last call; "" if there are none.
  std::string Take();

 private:
  // Makes an entry of this kind at the present step and generation.
  TimelineEntry Entry(const char* kind) const;
  void Add(absl::Time wall, TimelineEntry entry);
  void On(absl::Time wall, const OpenSave& action);
  void On(absl::Time wall, const AbandonSave& action);
  void On(absl::Time wall, const WentBack& action);
  void On(absl::Time wall, const WorkerChanged& action);
  void On(absl::Time wall, const Announce& action);
  template <typename Other>
  void On(absl::Time, const Other&) {}

  const int64_t term_;
  Phase phase_ = Phase::kAdopting;
  bool phase_told_ = false;
  Generation generation_;
  uint64_t step_ = 0;
  std::string lines_;
  int64_t left_out_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TIMELINE_TIMELINE_RECORDER_H_
