// Turns what a chief hears of a job into the series that TensorBoard shows beside the loss (docs/formats/events.md). No
// I/O and no clock inside: time is an argument, of a monotonic clock.
//
// Invariants
//   * No tag gets two values for one step, but for steps that are trained again.
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
  // Workers with a series of their own: the first names that a chief hears of.
  static constexpr size_t kMostWorkers = 64;
  // Of the changes that one note lists.
  static constexpr size_t kMostChanges = 64;
  // Rates are means over so long, of the time between two of their values.
  static constexpr absl::Duration kInterval = absl::Seconds(5);

  static constexpr char kChangesTag[] = "cluster/changes";

  struct GradientNorm {
    int64_t step = 0;
    double value = 0;
  };

  // What is told at a step, and what people read of it; either may be empty.
  struct Told {
    Scalars values;
    std::string changes;                   // Markdown
    std::optional<GradientNorm> gradient;  // of an earlier step
  };

  // `global_batch`: samples of a step.
  explicit TrainingSeries(int64_t global_batch) : global_batch_(global_batch) {}

  // Every agreed step has these.
  static Scalars OfStep(const StepRecord& record);

  // A worker applied `steps` steps in `took`, from one to the next. Its name may be beyond kMostWorkers. Names that
  // differ in `/` against `_` alone share a series.
  void Stepped(absl::string_view worker, int64_t steps, absl::Duration took);
  // The norm of the gradient of `step`, which may not be agreed yet; step 0: none. One is kept until it is told.
  void GradientNormed(int64_t step, double norm);
  // Something happened to the workers or to the state: a line for people, who see the beginning of a long one.
  void Changed(absl::string_view line);

  // Training goes on with a step that was agreed before, or with an earlier one. Readers drop what was told of it and
  // of later ones.
  void WentBack();

  // What is to be told behind the loss of `step`, which is the newest agreed one, with `workers` members and the job's
  // `totals`: counts when one of them changed, and with the rates once in kInterval, or `at_end`.
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
  std::optional<int64_t> told_;           // the step that values were told of last
  std::optional<Counts> counts_;          // as told last
  std::optional<Mark> rates_from_;        // what the next rates count from
  std::map<std::string, Sum> by_worker_;  // since then
  std::optional<GradientNorm> gradient_;
  int64_t gradient_told_ = 0;  // that of this step and of earlier ones is not told
  std::vector<std::string> changes_;
  size_t changes_left_out_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_TRAINING_SERIES_H_
