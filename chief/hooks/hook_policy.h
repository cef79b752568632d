// Decides which hooks of a job fire (docs/hooks.md). No I/O and no clock inside: time is an argument, of a monotonic
// clock.
//
// Invariants
//   * A hook fires at most once per step, even if training goes back to an earlier step or another chief continues from
//     these marks.
//   * The steps at which a hook with `step`, with `every` in training, or with `on: evaluation` fires depend on the job
//     alone, not on its workers or chiefs.
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_HOOKS_HOOK_POLICY_H_
#define LOCKSTEP_CHIEF_HOOKS_HOOK_POLICY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/job/job.h"
#include "protos/stats.pb.h"

namespace lockstep::chief {

enum class HookEvent : uint8_t { kStep = 0, kTime, kNan, kEvaluation, kCheckpoint, kEnd };
// "step", "time", "nan", ...: as commands read it.
absl::string_view HookEventName(HookEvent event);

// When one hook fires.
struct HookRule {
  HookEvent event = HookEvent::kStep;
  int64_t step = 0;       // kStep: at this one
  int64_t every = 0;      // kStep: at each multiple
  absl::Duration period;  // kTime
};
// The rules of a job's hooks, in its order. `epoch_samples`: samples of its training set.
std::vector<HookRule> HookRulesOf(const JobSpec& job, int64_t epoch_samples);

struct Firing {
  size_t hook = 0;  // its index in the job
  HookEvent event = HookEvent::kStep;
  int64_t step = 0;
  friend bool operator==(const Firing&, const Firing&) = default;
};

class HookPolicy {
 public:
  // The most firings of one hook at once: of a thousand steps that are agreed together, only the newest count.
  static constexpr int64_t kMostAtOnce = 64;

  // `marks`: of the previous chief.
  HookPolicy(std::vector<HookRule> rules, HookMarks marks);

  // Steps up to `step` are agreed.
  std::vector<Firing> Agreed(absl::Time now, int64_t step);
  // The loss or a gradient of `step` is not finite.
  std::vector<Firing> NotFinite(int64_t step);
  // The evaluation of `step` is complete.
  std::vector<Firing> Evaluated(int64_t step);
  // The checkpoint of `step` is published.
  std::vector<Firing> Published(int64_t step);
  // The job ends.
  std::vector<Firing> Ended(int64_t step) const { return All(HookEvent::kEnd, step); }

  // The firings so far, for the next chief.
  const HookMarks& marks() const { return marks_; }
  // The total of firings that were left out because of kMostAtOnce.
  int64_t left_out() const { return left_out_; }

 private:
  std::vector<Firing> All(HookEvent event, int64_t step) const;
  void AtSteps(size_t hook, int64_t after, int64_t upto, std::vector<Firing>& out);

  const std::vector<HookRule> rules_;
  std::vector<absl::Time> fired_;  // by hook: kTime only
  HookMarks marks_;
  int64_t left_out_ = 0;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_HOOK_POLICY_H_
