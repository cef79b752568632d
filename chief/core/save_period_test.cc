#include "chief/core/save_period.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// What a job loses per second of training with saves `every` apart: the saves, and after each failure half the distance
// on average. Failures come by chance, at a constant rate.
double Overhead(double every, double cost, double between_failures) {
  return between_failures * (std::exp((every + cost) / between_failures) - 1) / every - 1;
}

TEST_CASE("save period: Daly's interval is where saves and failures cost least", "[core]") {
  for (const double cost : {0.01, 0.5, 20.0, 300.0}) {
    for (const double between : {600.0, 3600.0, 86400.0}) {
      const double best = absl::ToDoubleSeconds(DalyInterval(absl::Seconds(cost), absl::Seconds(between)));
      CAPTURE(cost, between, best);
      const double least = Overhead(best, cost, between);
      for (const double factor : {0.5, 0.8, 1.25, 2.0}) CHECK(Overhead(best * factor, cost, between) > least);
    }
  }
  CHECK(DalyInterval(absl::Seconds(100), absl::Seconds(10)) == absl::Seconds(10));
}

// A job whose steps take 100 ms, and `slower` while saves are under way.
struct Training {
  void Run(absl::Duration time, bool saving, double slower = 1.0) {
    const absl::Duration step = absl::Milliseconds(100) * slower;
    for (absl::Duration passed; passed < time; passed += step) {
      period.Ran(policy, {.passed = step, .members = members, .agreed = ++agreed, .saving = saving});
    }
  }
  void RunAndSave(absl::Duration calm, absl::Duration saving, double slower) {
    Run(calm, false);
    Run(saving, true, slower);
    period.Saved();
  }

  int members = 1;
  TrainingPolicy policy;
  uint64_t agreed = 0;
  SavePeriod period;
};

TEST_CASE("save period: one minute until a save was measured, then by its cost", "[core]") {
  Training job{.members = 2};
  CHECK(job.period.Every() == SavePeriod::kFirst);
  CHECK(job.period.News().empty());

  job.RunAndSave(absl::Seconds(60), absl::Seconds(4), 2.0);  // 20 steps in 4 s: 2 s lost

  const absl::Duration expected =
      DalyInterval(absl::Seconds(2), absl::Hours(24) + 2 * absl::Seconds(64));  // nobody was lost
  CHECK(absl::AbsDuration(job.period.Every() - expected) < absl::Milliseconds(1));
  CHECK_THAT(job.period.News(), Contains("saves are 9m") && Contains("a save costs 2s") && Contains("(0 were,"));
  CHECK(job.period.News().empty());  // told once
}

TEST_CASE("save period: the more often workers are lost, the closer saves are", "[core]") {
  Training job{.members = 4};
  job.RunAndSave(absl::Seconds(60), absl::Seconds(4), 2.0);
  const absl::Duration before = job.period.Every();
  job.period.News();

  for (int i = 0; i < 99; ++i) job.period.Lost();

  CHECK(job.period.Every() < before / 9);
  CHECK(job.period.Every() > before / 12);
  CHECK_THAT(job.period.News(), Contains("(99 were,"));
}

TEST_CASE("save period: saves that cost nothing come as often as they may, and never overlap", "[core]") {
  Training free, slow, endless;
  free.RunAndSave(absl::Seconds(60), absl::Seconds(1), 1.0);
  CHECK(free.period.Every() == SavePeriod::kLeast);
  slow.RunAndSave(absl::Seconds(60), absl::Seconds(40), 1.0);
  CHECK(slow.period.Every() == absl::Seconds(80));
  endless.RunAndSave(absl::Seconds(60), absl::Hours(3), 1.0);
  CHECK(endless.period.Every() == SavePeriod::kMost);
}

TEST_CASE("save period: a storage that becomes slow is noticed", "[core]") {
  Training job;
  for (int i = 0; i < 200; ++i) job.RunAndSave(absl::Seconds(20), absl::Seconds(1), 1.1);
  const absl::Duration before = job.period.Every();
  for (int i = 0; i < 40; ++i) job.RunAndSave(absl::Seconds(20), absl::Seconds(8), 2.0);
  CHECK(job.period.Every() > 3 * before);
}

TEST_CASE("save period: evaluations, outages, and steps that an earlier chief saw are no measure of steps", "[core]") {
  Training plain, other;
  for (Training* job : {&plain, &other}) job->RunAndSave(absl::Seconds(60), absl::Seconds(4), 2.0);
  other.policy.eval_slices = 1;
  other.policy.eval_every_steps = other.agreed;  // due now
  other.period.Ran(other.policy, {.passed = absl::Minutes(9), .members = 0, .agreed = ++other.agreed});
  other.period.Ran(other.policy, {.passed = absl::Minutes(9), .members = 0, .agreed = other.agreed, .trouble = true});
  other.period.Ran(other.policy, {.passed = absl::Minutes(9), .members = 0, .agreed = ++other.agreed, .saving = true});
  other.agreed += 100'000;  // workers come back from further on
  other.period.Begin();
  other.Run(absl::Milliseconds(100), false);
  plain.Run(absl::Milliseconds(100), false);

  CHECK(absl::AbsDuration(other.period.Every() - plain.period.Every()) < absl::Milliseconds(1));
}

TEST_CASE("coordinator: saves that fall due by what they cost begin after a minute, and people hear of the distance",
          "[core]") {
  JobPolicy policy;
  policy.save_automatic = true;
  ChiefHarness chief({.workers = 2, .policy = policy});
  uint64_t step = 0;
  const auto run = [&](absl::Duration time) {  // a step each second
    for (const absl::Time end = chief.now() + time; chief.now() < end;) {
      chief.Advance(absl::Seconds(1));
      chief.StepTo(++step);
    }
  };
  run(SavePeriod::kFirst - absl::Seconds(2));
  CHECK(chief.worker(0).requests.count(RequestKind::kSnapshot) == 0);
  run(absl::Seconds(3));
  REQUIRE(chief.worker(0).requests.count(RequestKind::kSnapshot) == 1);
  const uint64_t number = chief.worker(0).requests[RequestKind::kSnapshot];
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK(chief.View().published_step == step);
  CHECK_THAT(chief.Said(), Contains("saves are 5s apart"));  // steps took no longer

  run(SavePeriod::kLeast + absl::Seconds(2));

  CHECK(chief.worker(0).requests[RequestKind::kSnapshot] > number);
}

}  // namespace
}  // namespace lockstep::chief
