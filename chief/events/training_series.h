// Turns what a chief hears of a job into the series that TensorBoard shows beside the loss (docs/formats/events.md). No
// I/O and no clock inside: time is an argument, of a monotonic clock.
//
// Invariants
//   * No tag has two values for one step, except for steps that are trained again.
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_EVENTS_TRAINING_SERIES_H_
#define LOCKSTEP_CHIEF_EVENTS_TRAINING_SERIES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "chief/events/event_record.h"
#include "common/protocol/messages.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

class TrainingSeries {
 public:
  // The most workers with a series of their own: the first names that a chief hears.
  static constexpr size_t kMostWorkers = 64;
  // The most changes that one note lists.
  static constexpr size_t kMostChanges = 64;
  // The interval over which rates are averaged.
  static constexpr absl::Duration kInterval = absl::Seconds(5);

  static constexpr char kChangesTag[] = "cluster/changes";

  struct GradientNorm {
    int64_t step = 0;
    double value = 0;
  };

  // Values and a note to record at a step; each may be empty.
  struct Told {
    Scalars values;
    std::string changes;                   // Markdown
    std::optional<GradientNorm> gradient;  // of an earlier step
  };

  // `global_batch`: samples of a step.
  explicit TrainingSeries(int64_t global_batch) : global_batch_(global_batch) {}

  // The values of every agreed step.
  static Scalars OfStep(const StepRecord& record);

  // A worker applied `steps` steps in `took`. Its name may be beyond kMostWorkers. Names that differ only in `/` and
  // `_` share a series.
  void Stepped(absl::string_view worker, int64_t steps, absl::Duration took);
  // The norm of the gradient of `step`, which may not be agreed yet; step 0: none. The newest is kept until it is
  // recorded.
  void GradientNormed(int64_t step, double norm);
  // Something happened to the workers or to the state: a line for people, cut if it is long.
  void Changed(absl::string_view line);

  // Training continues with a step that was agreed before, or with an earlier one. Readers drop what was recorded of it
  // and of later ones.
  void WentBack();

  // The values to record behind the loss of `step`, the newest agreed one, with `workers` members and the job's
  // `totals`: counts if one of them changed, and all with the rates once per kInterval, or `at_end`.
  Told Take(absl::Time now, int64_t step, size_t workers, const JobStats& totals, bool at_end);

 private:
  using Counts = std::array<int64_t, 8>;
  struct Mark {
    absl::Time when;
    int64_t step = 0;
  };
  struct Sum {
    int64_t steps = 0;
    absl::Duration took;
  };

  void TellRates(absl::Time now, int64_t step, Scalars& values);

  const int64_t global_batch_;
  std::optional<int64_t> told_;           // the step of the newest recorded values
  std::optional<Counts> counts_;          // as last recorded
  std::optional<Mark> rates_from_;        // start of the interval of the next rates
  std::map<std::string, Sum> by_worker_;  // in this interval
  std::optional<GradientNorm> gradient_;
  int64_t gradient_told_ = 0;  // norms up to this step are not recorded (again)
  std::vector<std::string> changes_;
  size_t changes_left_out_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_TRAINING_SERIES_H_
