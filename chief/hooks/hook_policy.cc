#include "chief/hooks/hook_policy.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "common/job/extent.h"

namespace lockstep::chief {
namespace {

HookRule RuleOf(const job::Hook& hook, int64_t epoch_samples, int64_t global_batch) {
  if (hook.has_step()) return {.event = HookEvent::kStep, .step = hook.step()};
  if (hook.has_every()) {
    const std::optional<int64_t> steps = StepsOf(hook.every(), epoch_samples, global_batch);
    if (steps.has_value()) return {.event = HookEvent::kStep, .every = *steps};
    return {.event = HookEvent::kTime, .period = *AmountTime(hook.every())};
  }
  switch (hook.on()) {
    case job::Hook::ON_NAN:
      return {.event = HookEvent::kNan};
    case job::Hook::ON_EVALUATION:
      return {.event = HookEvent::kEvaluation};
    case job::Hook::ON_CHECKPOINT:
      return {.event = HookEvent::kCheckpoint};
    default:
      return {.event = HookEvent::kEnd};
  }
}

}  // namespace

absl::string_view HookEventName(HookEvent event) {
  switch (event) {
    case HookEvent::kStep:
      return "step";
    case HookEvent::kTime:
      return "time";
    case HookEvent::kNan:
      return "nan";
    case HookEvent::kEvaluation:
      return "evaluation";
    case HookEvent::kCheckpoint:
      return "checkpoint";
    case HookEvent::kEnd:
      break;
  }
  return "end";
}

std::vector<HookRule> HookRulesOf(const JobSpec& job, int64_t epoch_samples) {
  std::vector<HookRule> rules;
  for (const job::Hook& hook : job.hooks()) {
    rules.push_back(RuleOf(hook, epoch_samples, job.train().global_batch_size()));
  }
  return rules;
}

HookPolicy::HookPolicy(std::vector<HookRule> rules, HookMarks marks)
    : rules_(std::move(rules)), fired_(rules_.size(), absl::InfinitePast()), marks_(std::move(marks)) {}

void HookPolicy::AtSteps(size_t hook, int64_t after, int64_t upto, std::vector<Firing>& out) {
  const HookRule& rule = rules_[hook];
  if (rule.step > after && rule.step <= upto) out.push_back({hook, rule.event, rule.step});
  if (rule.every <= 0) return;
  const int64_t last = upto / rule.every;
  const int64_t due = last - after / rule.every;
  const int64_t first = last - std::min(due, kMostAtOnce) + 1;
  left_out_ += due - std::min(due, kMostAtOnce);
  for (int64_t multiple = first; multiple <= last; ++multiple) out.push_back({hook, rule.event, multiple * rule.every});
}

std::vector<Firing> HookPolicy::Agreed(absl::Time now, int64_t step) {
  std::vector<Firing> firings;
  for (size_t hook = 0; hook < rules_.size(); ++hook) {
    if (rules_[hook].event == HookEvent::kStep && step > marks_.step()) AtSteps(hook, marks_.step(), step, firings);
    if (rules_[hook].event != HookEvent::kTime) continue;
    if (fired_[hook] == absl::InfinitePast()) fired_[hook] = now;  // the first period begins
    if (now - fired_[hook] < rules_[hook].period) continue;
    fired_[hook] = now;
    firings.push_back({hook, HookEvent::kTime, step});
  }
  marks_.set_step(std::max(marks_.step(), step));
  std::stable_sort(firings.begin(), firings.end(), [](const Firing& a, const Firing& b) { return a.step < b.step; });
  return firings;
}

std::vector<Firing> HookPolicy::All(HookEvent event, int64_t step) const {
  std::vector<Firing> firings;
  for (size_t hook = 0; hook < rules_.size(); ++hook) {
    if (rules_[hook].event == event) firings.push_back({hook, event, step});
  }
  return firings;
}

std::vector<Firing> HookPolicy::NotFinite(int64_t step) {
  if (step <= marks_.nan()) return {};
  marks_.set_nan(step);
  return All(HookEvent::kNan, step);
}

std::vector<Firing> HookPolicy::Evaluated(int64_t step) {
  if (step <= marks_.evaluation()) return {};
  marks_.set_evaluation(step);
  return All(HookEvent::kEvaluation, step);
}

std::vector<Firing> HookPolicy::Published(int64_t step) {
  if (step <= marks_.checkpoint()) return {};
  marks_.set_checkpoint(step);
  return All(HookEvent::kCheckpoint, step);
}

}  // namespace lockstep::chief
