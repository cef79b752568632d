// What failures cost, and what is no failure (rules 15 to 17).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// Of the budget alone.
JobPolicy LeavingNoHostOut() {
  JobPolicy policy;
  policy.exclude_host_after = 0;
  return policy;
}

TEST_CASE("coordinator: a lost process spends nothing, however often", "[core]") {
  ChiefHarness chief({.workers = 2});
  for (uint64_t i = 1; i <= 20; ++i) {
    chief.Kill(1);
    chief.Do(ProcessExited{"worker-1", 9, 0});
    chief.Connect(1);
    chief.MeetAtBoundary();
  }

  CHECK_FALSE(chief.ended());
  CHECK(chief.View().failures == 0);
  CHECK(chief.View().losses == 20);
}

TEST_CASE("coordinator: a finished job waits for no worker whose process ended, whatever is heard first", "[core]") {
  const bool report_first = GENERATE(true, false);
  ChiefHarness chief({.workers = 2, .end_step = 50});
  chief.StepTo(49);
  for (const int i : {1, 0}) chief.Apply(i, 50);
  chief.TakeSnapshotAt(1, SnapshotCause::kEnd);
  chief.worker(1).mute = true;
  chief.TakeSnapshotAt(0, SnapshotCause::kEnd);
  REQUIRE(chief.phase() == Phase::kDone);

  if (report_first) chief.Do(ProcessExited{"worker-1", 9, 0});
  chief.Reset(1);
  if (!report_first) chief.Do(ProcessExited{"worker-1", 9, 0});
  chief.Advance(absl::Seconds(1));

  REQUIRE(chief.ended());
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a job whose supervisor has no worker left ends at once with the last one's code and cause",
          "[core]") {
  const bool stepped = GENERATE(false, true);
  ChiefHarness chief({.workers = stepped ? 1u : 0u});
  if (stepped) {
    chief.StepTo(20);
    chief.TakeSnapshots(SnapshotCause::kDue);
    chief.Reset(0);
  } else {
    chief.worker(0).mute = true;
    chief.Connect(0);
    chief.Say(0, PrepareFailed{PrepareProblem::kOther, "no GPU here"});
  }

  chief.Do(ProcessExited{"worker-0", 0, 78, /*last=*/false, "no GPU here"});
  CHECK_FALSE(chief.ended());
  chief.Do(ProcessExited{"worker-0", 0, 78, /*last=*/true, "no GPU here"});

  REQUIRE(chief.ended());
  CHECK(chief.Last<Exit>().code == 78);
  CHECK_THAT(chief.Last<Exit>().reason,
             Contains("worker-0: no GPU here; step ") && Contains(stepped ? "step 20 is" : "step 0 is"));
  CHECK_THAT(chief.Said(), !Contains("saving first"));
}

TEST_CASE("coordinator: crash signals spend the budget and stop the job with its causes", "[core]") {
  ChiefHarness chief({.workers = 2, .policy = LeavingNoHostOut()});
  uint64_t step = 0;
  int crashes = 0;
  const auto stops = [&] { return chief.worker(0).requests.count(RequestKind::kStop) != 0; };
  while (!stops() && crashes < 10) {
    chief.StepTo(++step);
    chief.Kill(1);
    chief.Do(ProcessExited{"worker-1", 11, 0});
    ++crashes;
    if (stops()) break;
    chief.Connect(1);
    chief.MeetAtBoundary();
    chief.StepTo(++step);
  }
  CHECK(crashes == 6);  // failure.max_failures is 5
  CHECK_FALSE(chief.ended());

  // What the survivors hold is saved before the job ends.
  chief.TakeSnapshots(SnapshotCause::kStop);

  CHECK(chief.Last<PublishCommit>().snapshot.step == step);
  CHECK(chief.worker(0).exit_code == 70);
  CHECK(chief.Last<Exit>().code == 70);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("signal 11"));
}

TEST_CASE("coordinator: a published save of a new step gives one failure back", "[core]") {
  ChiefHarness chief({.workers = 2, .policy = LeavingNoHostOut()});
  uint64_t step = 0;
  for (int i = 0; i < 12; ++i) {
    chief.StepTo(++step);
    chief.Kill(1);
    chief.Do(ProcessExited{"worker-1", 11, 0});
    chief.Connect(1);
    chief.MeetAtBoundary();
    chief.StepTo(++step);
    chief.TakeSnapshots(SnapshotCause::kDue);
  }

  CHECK_FALSE(chief.ended());
  CHECK(chief.View().failures == 0);
}

TEST_CASE("coordinator: three generations in a row broken by an error without a step between stop the job", "[core]") {
  const bool steps_between = GENERATE(false, true);
  ChiefHarness chief({.workers = 2, .policy = LeavingNoHostOut()});
  for (uint64_t i = 1; i <= 3; ++i) {
    if (steps_between) chief.StepTo(i);
    chief.Say(1, ErrorReport{70, 0, "cannot allocate 3 GiB for conv1"});
    if (chief.ended()) break;
    chief.NewProcess(1);
    chief.Connect(1);
    chief.MeetAtBoundary();
  }

  CHECK(chief.ended() == !steps_between);
  if (!steps_between) {
    CHECK(chief.Last<Exit>().code == 70);
    CHECK_THAT(chief.Last<Exit>().reason, Contains("in a row") && Contains("conv1"));
    CHECK(chief.worker(0).exit_code == 70);
  }
}

TEST_CASE("coordinator: a budget that is spent while nothing steps saves what is held before the job ends", "[core]") {
  JobPolicy policy;
  policy.max_failures = 0;
  ChiefHarness chief({.workers = 2, .min = 2, .policy = policy});
  chief.StepTo(7);

  chief.Say(1, ErrorReport{70, 7, "broken invariant"});

  CHECK(chief.Last<PublishCommit>().snapshot.step == 7);
  CHECK(chief.worker(0).exit_code == 70);
  CHECK(chief.Last<Exit>().code == 70);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("broken invariant") && Contains("step 7 is published"));
}

TEST_CASE("coordinator: a job that is to end does so although processes crash one after the other", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);
  chief.Kill(0);
  chief.Kill(1);  // what they held is lost
  chief.Do(StopRequested{"SIGTERM", 75});

  for (int crash = 0; crash < 10 && !chief.ended(); ++crash) {
    chief.Connect(1);
    chief.Advance(chief.config().policy.heartbeat_limit / 4);
    if (!chief.ended()) chief.Kill(1);
  }

  CHECK(chief.Last<Exit>().code == 75);
}

TEST_CASE("coordinator: an error that was reported is not counted again when the process dies of it", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);

  chief.Say(1, ErrorReport{70, 3, "broken invariant"});
  chief.Do(ProcessExited{"worker-1", 6, 0});

  CHECK(chief.View().failures == 1);
}

TEST_CASE("coordinator: an error of the data ends the job with 65, for everybody would meet it", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);

  chief.Say(1, ErrorReport{65, 4, "conv1.weight became NaN (on_nan: stop)"});
  CHECK(chief.Count<Exit>() == 0);
  chief.TakeSnapshots(SnapshotCause::kStop);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 3);
  CHECK(chief.Last<Exit>().code == 65);
  CHECK(chief.worker(0).exit_code == 65);
}

TEST_CASE("coordinator: after a pause of its own it condemns nobody before it listened", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  chief.Forget();

  chief.Pause(absl::Seconds(30));
  chief.Do(Tick{});
  chief.Advance(absl::Seconds(4));
  CHECK(chief.Count<Send>() == 0);

  // Who is silent after it is still found.
  chief.worker(2).beating = false;
  chief.worker(2).mute = true;
  chief.Advance(absl::Seconds(6));
  CHECK(chief.Commands<Verdict>(0).size() == 1);
}

TEST_CASE("coordinator: a pause in the middle of a break leaves the members their time to acknowledge", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.worker(2).mute = true;
  chief.Kill(0);
  chief.Pause(absl::Seconds(30));
  chief.Do(Tick{});

  CHECK(chief.phase() == Phase::kBreaking);
}

TEST_CASE("coordinator: no node executed and no byte moved is a verdict, and each doubles the limit until a step",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  const auto hang = [&] {
    chief.worker(1).phase = Heartbeat::Phase::kComputing;
    chief.Forget();
    absl::Duration waited = absl::ZeroDuration();
    while (chief.Commands<Verdict>(0).empty() && waited < absl::Minutes(2)) {
      chief.Advance(absl::Seconds(1));
      waited += absl::Seconds(1);
    }
    return waited;
  };

  const absl::Duration first = hang();
  CHECK(first >= absl::Seconds(10));
  CHECK(first <= absl::Seconds(12));
  chief.NewProcess(1);
  chief.Connect(1);
  chief.MeetAtBoundary();

  const absl::Duration second = hang();
  CHECK(second >= absl::Seconds(20));
  CHECK(second <= absl::Seconds(22));
  chief.NewProcess(1);
  chief.Connect(1);
  chief.MeetAtBoundary();

  chief.StepTo(5);
  CHECK(hang() <= absl::Seconds(12));
}

TEST_CASE("coordinator: a worker without progress is given up with what it was doing", "[core]") {
  ChiefHarness chief({.workers = 2});
  FakeWorker& hangs = chief.worker(1);
  hangs.beating = false;

  for (int i = 0; i < 12; ++i) {
    chief.Advance(absl::Seconds(1));
    chief.Do(HeartbeatReceived{WorkerFence{"job-1", hangs.term, hangs.id},
                               {Heartbeat::Phase::kComputing, 1, {5, 0}},
                               "node 'fc1' for 9s, in step 5 for 9s"});
  }

  REQUIRE_FALSE(chief.Commands<Verdict>(0).empty());
  CHECK_THAT(chief.Commands<Verdict>(0).back().reason, Contains("worker-1: no node executed and no byte moved for 1") &&
                                                           Contains("s: node 'fc1' for 9s, in step 5 for 9s"));
}

TEST_CASE("coordinator: a worker that stands still with what nobody saved is waited for while it lives, not for ever",
          "[core]") {
  JobPolicy policy;
  policy.last_call = absl::Seconds(2);
  ChiefHarness chief({.workers = 2, .logical_shards = 1, .policy = policy});
  chief.StepTo(5);
  REQUIRE(chief.Members() == std::vector<int>{0});
  FakeWorker& hangs = chief.worker(0);
  hangs.phase = Heartbeat::Phase::kComputing;
  hangs.mute = true;
  while (hangs.connected) chief.Advance(absl::Milliseconds(500));
  chief.Connect(0);
  chief.Advance(absl::Seconds(15));
  CHECK(chief.Commands<Form>(1).empty());

  SECTION("until it ends its process") { chief.Kill(0); }
  SECTION("until it is given up once more") { chief.Advance(absl::Seconds(6)); }

  chief.Advance(absl::Seconds(1));
  REQUIRE(chief.Commands<Form>(1).size() == 1);
  CHECK(chief.Commands<Form>(1)[0].restore.has_value());
}

TEST_CASE("coordinator: progress is nodes and bytes, and waiting is no lack of it", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.Forget();
  chief.worker(0).phase = Heartbeat::Phase::kWaitingForPeer;
  chief.worker(1).phase = Heartbeat::Phase::kComputing;

  for (int i = 0; i < 100; ++i) {
    ++chief.worker(1).progress;  // one node a second, and no step for 100 s
    chief.Advance(absl::Seconds(1));
  }

  CHECK(chief.Commands<Verdict>(0).empty());
}

}  // namespace
}  // namespace lockstep::chief
