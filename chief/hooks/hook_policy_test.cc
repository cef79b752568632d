#include "chief/hooks/hook_policy.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep::chief {
namespace {

using Firings = std::vector<Firing>;

absl::Time At(double seconds) { return absl::FromUnixSeconds(1000) + absl::Seconds(seconds); }

HookRule AtStep(int64_t step) { return {.event = HookEvent::kStep, .step = step}; }
HookRule Every(int64_t steps) { return {.event = HookEvent::kStep, .every = steps}; }
HookRule Each(absl::Duration period) { return {.event = HookEvent::kTime, .period = period}; }
HookRule On(HookEvent event) { return {.event = event}; }

// The steps for which hook 0 fires when the job is agreed at each of `steps`.
std::vector<int64_t> FiredAt(HookPolicy& policy, const std::vector<int64_t>& steps) {
  std::vector<int64_t> fired;
  for (const int64_t step : steps) {
    for (const Firing& firing : policy.Agreed(At(0), step)) fired.push_back(firing.step);
  }
  return fired;
}

TEST_CASE("hook policy: a hook fires for the same steps, however many are agreed at once", "[hooks]") {
  struct Row {
    HookRule rule;
    std::vector<int64_t> agreed, fired;
  };
  const std::vector<Row> rows = {
      {AtStep(7), {6, 7, 8}, {7}},
      {AtStep(7), {3, 20}, {7}},
      {AtStep(7), {3, 6}, {}},
      {Every(5), {1, 4, 5, 6, 9, 10}, {5, 10}},
      {Every(5), {12}, {5, 10}},
      {Every(1), {3}, {1, 2, 3}},
      {Every(5), {10, 7, 10, 15}, {5, 10, 15}},  // went back
  };
  for (const Row& row : rows) {
    CAPTURE(row.rule.step, row.rule.every, row.agreed);
    HookPolicy policy({row.rule}, {});
    CHECK(FiredAt(policy, row.agreed) == row.fired);
  }
}

TEST_CASE("hook policy: a chief that goes on does not repeat what the one before told", "[hooks]") {
  HookPolicy first({Every(5), On(HookEvent::kEvaluation), On(HookEvent::kCheckpoint), On(HookEvent::kNan)}, {});
  CHECK(first.Agreed(At(0), 12).size() == 2);
  CHECK(first.Evaluated(10).size() == 1);
  CHECK(first.Published(12).size() == 1);
  CHECK(first.NotFinite(11).size() == 1);

  HookPolicy next({Every(5), On(HookEvent::kEvaluation), On(HookEvent::kCheckpoint), On(HookEvent::kNan)},
                  first.marks());

  CHECK(next.Agreed(At(0), 10).empty());
  CHECK(next.Evaluated(10).empty());
  CHECK(next.Published(12).empty());
  CHECK(next.NotFinite(11).empty());
  CHECK(next.Agreed(At(0), 15) == Firings{{0, HookEvent::kStep, 15}});
  CHECK(next.Evaluated(20) == Firings{{1, HookEvent::kEvaluation, 20}});
  CHECK(next.Published(20) == Firings{{2, HookEvent::kCheckpoint, 20}});
  CHECK(next.NotFinite(16) == Firings{{3, HookEvent::kNan, 16}});
}

TEST_CASE("hook policy: a time is counted from the chief's start, and fires while steps are agreed", "[hooks]") {
  HookPolicy policy({Each(absl::Seconds(30))}, {});

  CHECK(policy.Agreed(At(0), 1).empty());
  CHECK(policy.Agreed(At(29), 9).empty());
  CHECK(policy.Agreed(At(31), 11) == Firings{{0, HookEvent::kTime, 11}});
  CHECK(policy.Agreed(At(32), 12).empty());
  CHECK(policy.Agreed(At(500), 13).size() == 1);  // not once for each period that passed
}

TEST_CASE("hook policy: of very many steps at once the newest fire, and the others are counted", "[hooks]") {
  HookPolicy policy({Every(1)}, {});

  const Firings firings = policy.Agreed(At(0), 1'000'000);

  CHECK(firings.size() == HookPolicy::kMostAtOnce);
  CHECK(firings.front().step == 1'000'000 - HookPolicy::kMostAtOnce + 1);
  CHECK(firings.back().step == 1'000'000);
  CHECK(policy.left_out() == 1'000'000 - HookPolicy::kMostAtOnce);
}

TEST_CASE("hook policy: hooks fire in the order of their steps, then in that of the job", "[hooks]") {
  HookPolicy policy({Every(4), AtStep(2), AtStep(4)}, {});

  CHECK(policy.Agreed(At(0), 5) ==
        Firings{{1, HookEvent::kStep, 2}, {0, HookEvent::kStep, 4}, {2, HookEvent::kStep, 4}});
  CHECK(policy.Ended(5).empty());
}

TEST_CASE("hook policy: rules follow from the job: epochs and samples are whole steps", "[hooks]") {
  JobSpec job;
  job.mutable_train()->set_global_batch_size(100);
  const auto add = [&] { return job.add_hooks(); };
  add()->set_step(9);
  add()->mutable_every()->set_milli_epochs(500);
  add()->mutable_every()->set_samples(250);
  add()->mutable_every()->mutable_time()->set_seconds(30);
  add()->set_on(job::Hook::ON_END);

  const std::vector<HookRule> rules = HookRulesOf(job, 1000);

  REQUIRE(rules.size() == 5);
  CHECK(rules[0].step == 9);
  CHECK(rules[1].every == 5);
  CHECK(rules[2].every == 3);
  CHECK(rules[3].period == absl::Seconds(30));
  CHECK(rules[3].event == HookEvent::kTime);
  CHECK(rules[4].event == HookEvent::kEnd);
}

}  // namespace
}  // namespace lockstep::chief
