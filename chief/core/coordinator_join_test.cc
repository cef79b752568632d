// Coming in: kernel plan, preparation, connection tests, cold start and parking (rules 6, 11, 30 to 32).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("coordinator: one worker makes the kernel plan, everyone replays it once it is stored", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 2});
  chief.storing = false;

  chief.Connect(0);
  chief.Connect(1);
  CHECK(chief.Commands<MakePlan>(0).size() == 1);
  CHECK(chief.Commands<MakePlan>(1).empty());
  CHECK(chief.Count<StorePlan>() == 1);
  CHECK(chief.Commands<Prepare>(0).empty());
  chief.Do(PlanStored{"plan-1"});

  CHECK(chief.LastCommand<Prepare>(1).plan_hash == "plan-1");
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: when the maker of the plan dies another one is appointed", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 1});
  chief.worker(0).mute = true;
  chief.Connect(0);
  chief.Connect(1);

  chief.Kill(0);

  CHECK(chief.Commands<MakePlan>(1).size() == 1);
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: a worker that cannot run the plan is refused before it holds anybody up", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.worker(2).can_run = false;

  chief.Connect(2);

  CHECK(chief.LastCommand<Refused>(2).exit_code == 78);
  CHECK_THAT(chief.LastCommand<Refused>(2).message, Contains("AVX-512"));
  CHECK_THAT(chief.Said(), Contains("refused worker-2 on host-2: no AVX-512 here"));
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Commands<Verdict>(0).empty());
}

TEST_CASE("coordinator: a plan that no worker here can run is replaced while nothing was trained with it", "[core]") {
  const uint64_t step = GENERATE(0, 16);
  ChiefHarness chief({.workers = 0, .expected = 1, .checkpoint_step = step, .plan = "plan-of-gone-machines"});
  chief.worker(0).can_run = false;

  chief.Connect(0);

  CHECK(chief.Commands<MakePlan>(0).size() == (step == 0 ? 1u : 0u));
  CHECK(chief.Commands<Refused>(0).size() == (step == 0 ? 0u : 1u));
}

TEST_CASE("coordinator: a plan whose digests could not be kept in a line is refused, and nothing is stored", "[core]") {
  const std::string digest = GENERATE(std::string(129, 'd'), std::string("two\nlines"));
  const bool of_data = GENERATE(false, true);
  ChiefHarness chief({.workers = 0, .expected = 1});
  (of_data ? chief.worker(0).ready.data_digest : chief.worker(0).ready.plan_hash) = digest;

  chief.Connect(0);

  CHECK(chief.Count<StorePlan>() == 0);
  CHECK(chief.LastCommand<Refused>(0).exit_code == 78);
}

TEST_CASE("coordinator: a worker that cannot run the plan it made itself is refused", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 1});
  chief.worker(0).cannot_run_its_own = true;

  chief.Connect(0);

  CHECK(chief.Commands<MakePlan>(0).size() == 1);
  CHECK(chief.LastCommand<Refused>(0).exit_code == 78);
}

TEST_CASE("coordinator: a worker with other data is refused", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.worker(2).ready.data_digest = "data-2";

  chief.Connect(2);

  CHECK(chief.LastCommand<Refused>(2).exit_code == 65);
  CHECK_THAT(chief.LastCommand<Refused>(2).message, Contains("data-1") && Contains("data-2"));
}

TEST_CASE("coordinator: a replica of earlier settings is made again before it joins", "[core]") {
  JobPolicy policy;
  policy.training.settings = "new";
  ChiefHarness chief({.workers = 1, .checkpoint_step = 10, .plan = "plan-1", .policy = policy});
  chief.worker(1).ready = {"plan-1", "data-1", absl::ZeroDuration(), 100, "old"};
  chief.worker(1).has_state = true;

  chief.Connect(1);

  CHECK(chief.LastCommand<Prepare>(1).settings == "new");
}

TEST_CASE("coordinator: a worker of another job is refused", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.worker(1).hello.job = "job-2";

  chief.Connect(1);

  CHECK(chief.LastCommand<Refused>(1).exit_code == 78);
}

TEST_CASE("coordinator: a pair that failed shares no generation until a test succeeds", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 3});
  chief.worker(2).unreachable = {"worker-0"};
  for (int i = 0; i < 3; ++i) chief.Connect(i);
  CHECK(chief.phase() == Phase::kWaiting);

  chief.Advance(absl::Seconds(31));  // the last call ends
  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
  CHECK(chief.Commands<Form>(2).empty());
  CHECK_THAT(chief.Said(), Contains("worker-2 cannot connect to worker-0"));

  chief.worker(2).unreachable.clear();
  chief.Advance(absl::Seconds(2));
  chief.MeetAtBoundary();
  CHECK(chief.LastCommand<Form>(2).members.size() == 3);
}

TEST_CASE("coordinator: a pair that fails while forming is tested again before it is used", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(3);
  chief.worker(1).unreachable = {"worker-0"};

  chief.Say(1, PeerFailed{chief.worker(1).generation, chief.worker(0).id, true, "timeout"});

  CHECK(chief.LastCommand<Form>(0).members.size() == 1);
  chief.worker(1).unreachable.clear();
  chief.Advance(absl::Seconds(2));
  CHECK(chief.worker(0).requests.count(RequestKind::kForm) == 1);
}

TEST_CASE("coordinator: a cold start waits for the expected workers, but not beyond the last call", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 3});
  chief.Connect(0);
  chief.Connect(1);

  chief.Advance(absl::Seconds(29));
  CHECK(chief.phase() == Phase::kWaiting);
  chief.Advance(absl::Seconds(2));

  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: while it waits it says who is missing", "[core]") {
  ChiefHarness chief({.workers = 0, .min = 3, .expected = 3});
  chief.Connect(0);
  chief.Connect(1);
  chief.Kill(1);

  chief.Advance(absl::Seconds(11));

  CHECK_THAT(chief.Said(),
             Contains("1/3 joined") && Contains("1 that never connected") && Contains("worker-1 (its session ended"));
}

TEST_CASE("coordinator: below the minimum nobody steps, and the state stays in memory", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(12);
  chief.Forget();

  chief.Kill(1);
  chief.Advance(absl::Seconds(60));
  CHECK(chief.Commands<Form>(0).empty());
  chief.Connect(1);

  CHECK(chief.LastCommand<Form>(0).position == Position{12, 0});
}

TEST_CASE("coordinator: when the wait for the minimum runs out the state is saved and everybody exits 75", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(12);
  chief.Kill(1);

  chief.Advance(absl::Minutes(10) + absl::Seconds(2));

  CHECK(chief.Last<PublishCommit>().snapshot.step == 12);
  CHECK(chief.worker(0).exit_code == 75);
  CHECK(chief.Last<Exit>().code == 75);
}

TEST_CASE("coordinator: a replica at rest is commanded directly, fenced by generation, lineage and position",
          "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(12);
  const Generation last = chief.worker(0).generation;
  chief.Kill(1);
  chief.Forget();

  chief.Advance(absl::Minutes(10) + absl::Seconds(2));

  for (const Send& send : chief.All<Send>()) {
    if (const auto* command = std::get_if<TakeSnapshot>(&send.command)) {
      CHECK(send.fence.generation == last);
      CHECK(command->position == Position{12, 0});
      CHECK(command->lineage == "lineage-1");
    }
  }
  CHECK(chief.Commands<TakeSnapshot>(0).size() == 1);
}

TEST_CASE("coordinator: a worker that is not what the chief believes is made to say what it is", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(12);
  chief.Kill(1);
  chief.worker(0).position = Position{11, 0};  // unlike its acknowledgement
  chief.Do(StopRequested{"user", 0});
  REQUIRE(chief.rejected);
  REQUIRE_FALSE(chief.worker(0).connected);

  chief.Connect(0);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 11);
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: a name that is taken on another host is not given twice", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.worker(2).hello.preferred_name = "worker-0";

  chief.Connect(2);

  CHECK(chief.worker(2).name == "worker-2");
  CHECK(chief.phase() == Phase::kRunning);
}

}  // namespace
}  // namespace lockstep::chief
