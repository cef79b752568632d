// A restarted chief: adoption and fencing (rules 13 and 14).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

// ---- adoption (rule 14)

// Two workers that run a generation of term 1 at step 30.
void RunUnderOldChief(ChiefHarness& chief) {
  std::vector<Member> members;
  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    members.push_back(Member{w.id, absl::StrCat("worker-", i), w.hello.peer_address});
    w.has_state = true;
    w.lineage = "lineage-1";
    w.position = Position{30, 0};
    w.generation = Generation{1, 4};
    w.term = 1;
  }
  for (int i : {0, 1}) chief.worker(i).members = members;
}

TEST_CASE("coordinator: a restarted chief adopts a generation that is complete, and disturbs nobody", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);

  chief.Connect(0);
  CHECK(chief.phase() == Phase::kAdopting);
  chief.Connect(1);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.View().generation == Generation{1, 4});
  CHECK(chief.Commands<Verdict>(0).empty());
  CHECK(chief.Commands<Form>(0).empty());
  chief.StepTo(31);
  CHECK(chief.View().agreed_step == 31);
  chief.Advance(absl::Milliseconds(500));
  CHECK(chief.View().workers[0].step == 31);
  chief.Kill(0);
  CHECK(chief.LastCommand<Form>(1).position == Position{31, 0});
}

TEST_CASE("coordinator: a member that had no state yet when it said Hello is adopted once it reports one", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);
  chief.worker(1).has_state = false;
  for (int i : {0, 1}) chief.Connect(i);
  REQUIRE(chief.phase() == Phase::kAdopting);

  chief.worker(1).has_state = true;
  chief.Say(1, Report{Generation{1, 4}, "lineage-1", {31, 0}, {}, {}, {}});

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.View().generation == Generation{1, 4});
}

TEST_CASE("coordinator: what members report of their states while a chief listens for them is compared",
          "[core][rule22]") {
  const bool differ = GENERATE(false, true);
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);
  for (int i : {0, 1}) chief.worker(i).members.push_back(Member{Incarnation{9, 9}, "worker-2", ""});
  for (int i : {0, 1}) chief.Connect(i);
  REQUIRE(chief.phase() == Phase::kAdopting);

  for (int i : {0, 1}) {
    FakeWorker& w = chief.worker(i);
    w.position = Position{32, 0};
    if (differ && i == 1) w.digest_suffix = "-flipped";
    chief.Audit(i);
  }

  CHECK(chief.Count<RecordRepair>() == (differ ? 1 : 0));
  if (!differ) return;
  CHECK(chief.Last<RecordRepair>().found_at == 32);
  CHECK(chief.Last<RecordRepair>().hosts.empty());  // who copied from whom, the chief before knew
}

TEST_CASE("coordinator: a generation that is incomplete when the window ends is broken and formed anew", "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);

  chief.Connect(0);
  chief.Advance(absl::Seconds(4));
  CHECK(chief.phase() == Phase::kAdopting);
  chief.Advance(absl::Seconds(2));

  CHECK(chief.Commands<Verdict>(0).size() == 1);
  CHECK(chief.LastCommand<Form>(0).position == Position{30, 0});
  CHECK_FALSE(chief.LastCommand<Form>(0).restore.has_value());
}

TEST_CASE("coordinator: a member of an incomplete generation that does not answer holds nobody up for long", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);
  for (int i : {0, 1}) chief.worker(i).members.push_back(Member{Incarnation{9, 9}, "worker-2", ""});
  chief.worker(1).mute = true;
  chief.Connect(0);
  chief.Connect(1);

  chief.Advance(absl::Seconds(8));

  CHECK(chief.LastCommand<Form>(0).members.size() == 1);
}

TEST_CASE("coordinator: a restarted chief restores nothing while somebody may hold a newer state", "[core]") {
  ChiefHarness chief({.expected = 1, .term = 2, .plan = "plan-1"});
  chief.Connect(5);  // a newcomer, ready at once
  chief.Advance(absl::Seconds(4));
  CHECK(chief.Commands<Form>(5).empty());

  RunUnderOldChief(chief);
  chief.Connect(0);
  chief.Advance(absl::Seconds(2));

  CHECK(chief.LastCommand<Form>(5).position == Position{30, 0});
}

TEST_CASE("coordinator: what a member reports before the others came back does not condemn it", "[core]") {
  JobPolicy policy;
  policy.training.eval_slices = 1;
  policy.training.eval_every_steps = 30;
  ChiefHarness chief({.term = 2, .plan = "plan-1", .policy = policy});
  RunUnderOldChief(chief);

  chief.Connect(0);
  chief.Apply(0, 31);
  chief.Say(0, EvalReport{"lineage-1", 30, {SliceResult{0, {.correct = 3}}}});
  chief.Connect(1);
  chief.Apply(1, 31);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Commands<Verdict>(0).empty());
  CHECK(chief.Last<EvaluationDone>().step == 30);
  REQUIRE(chief.Last<StepsAgreed>().step == 31);
  chief.StepTo(32);
  CHECK(chief.Last<StepsAgreed>().step == 32);
}

TEST_CASE("coordinator: members that finish before it is decided that they go on have finished", "[core]") {
  ChiefHarness chief({.end_step = 31, .term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);

  chief.Do(BurstBegins{});
  for (int i : {0, 1}) chief.Connect(i);
  chief.StepTo(31);  // with the last snapshot
  CHECK(chief.phase() == Phase::kAdopting);
  chief.Do(BurstEnds{});
  chief.Advance(absl::Seconds(1));

  CHECK(chief.Last<Exit>().code == 0);
  for (int i : {0, 1}) CHECK(chief.worker(i).exit_code == 0);
}

TEST_CASE("coordinator: a save that the last chief did not finish is finished by the next", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);
  for (int i : {0, 1}) chief.worker(i).snapshots = {SnapshotId{"lineage-1", 28, "digest-of-28"}};

  chief.Connect(0);
  chief.Connect(1);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Last<PublishCommit>().snapshot.step == 28);
  CHECK(chief.worker(0).snapshots.empty());
}

TEST_CASE("coordinator: a chief that died before the last commit is followed by one that makes it", "[core]") {
  ChiefHarness chief({.end_step = 30, .term = 2, .plan = "plan-1"});
  RunUnderOldChief(chief);
  for (int i : {0, 1}) chief.worker(i).snapshots = {SnapshotId{"lineage-1", 30, "digest-of-30"}};

  chief.Connect(0);
  chief.Connect(1);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 30);
  CHECK(chief.worker(0).exit_code == 0);
  CHECK(chief.worker(1).exit_code == 0);
  CHECK(chief.Last<Exit>().code == 0);
}

// ---- a chief that was away

// Members of a running generation that a chief of term 1 formed, at step 10.
ChiefHarness ChiefOf(uint32_t workers) {
  ChiefHarness chief({.workers = workers});
  chief.StepTo(10);
  chief.Forget();
  return chief;
}

void ExpectUndisturbed(ChiefHarness& chief, const std::vector<int>& members) {
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.View().generation == Generation{1, 1});
  for (const int i : members) {
    CAPTURE(i);
    CHECK(chief.Commands<Verdict>(i).empty());
    CHECK(chief.Commands<Form>(i).empty());
  }
  chief.StepTo(60);
  CHECK(chief.View().agreed_step == 60);
}

TEST_CASE("coordinator: a chief that was paused goes on with the generation that stepped on", "[core]") {
  ChiefHarness chief = ChiefOf(3);
  const bool all_reconnect = GENERATE(true, false);
  CAPTURE(all_reconnect);
  const std::vector<int> back = all_reconnect ? std::vector<int>{2, 0, 1} : std::vector<int>{1};

  chief.Pause(absl::Seconds(30));
  for (const int i : back) chief.Reset(i, "it gave up a chief that hangs");
  for (const int i : back) {
    chief.worker(i).position = Position{55, 0};
    chief.Connect(i);
  }

  ExpectUndisturbed(chief, {0, 1, 2});
}

TEST_CASE("coordinator: a member that died while the chief was paused is found out soon", "[core]") {
  ChiefHarness chief = ChiefOf(3);
  const bool reported = GENERATE(false, true);
  CAPTURE(reported);

  chief.Pause(absl::Seconds(30));
  chief.Kill(2);
  CHECK(chief.phase() == Phase::kAdopting);
  if (reported) chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "a connection broke"});
  chief.Advance(absl::Seconds(8));

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.LastCommand<Form>(0).members.size() == 2);
  CHECK_FALSE(chief.LastCommand<Form>(0).restore.has_value());
}

TEST_CASE("coordinator: a chief that was cut off from all members goes on with them, however long it took", "[core]") {
  ChiefHarness chief = ChiefOf(3);
  const absl::Duration cut = GENERATE(absl::Seconds(7), absl::Minutes(2));
  for (int i : {0, 1, 2}) chief.worker(i).beating = false;

  chief.Advance(cut);
  CHECK(chief.View().workers.empty());
  for (int i : {0, 1, 2}) {
    chief.worker(i).beating = true;
    chief.worker(i).position = Position{55, 0};
    chief.Connect(i);
  }

  ExpectUndisturbed(chief, {0, 1, 2});
}

TEST_CASE("coordinator: a generation all of whose sessions were lost goes on when they come back", "[core]") {
  ChiefHarness chief = ChiefOf(1);

  chief.Reset(0);
  chief.Connect(0);

  ExpectUndisturbed(chief, {0});
}

TEST_CASE("coordinator: one silent member among others is lost, as ever", "[core]") {
  ChiefHarness chief = ChiefOf(3);
  chief.worker(2).beating = false;
  chief.worker(2).mute = true;

  chief.Advance(absl::Seconds(7));

  CHECK(chief.LastCommand<Form>(0).members.size() == 2);
}

TEST_CASE("coordinator: a generation that a member has left does not go on when another one comes back", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(10);
  chief.Reset(1);  // the other one acknowledges the end, and is too few alone
  REQUIRE(chief.phase() == Phase::kWaiting);

  chief.Connect(1);

  CHECK(chief.Commands<Verdict>(1).size() == 1);
  CHECK(chief.LastCommand<Form>(0).position == Position{10, 0});
}

TEST_CASE("coordinator: a worker alone that hangs is not taken back as it is", "[core]") {
  ChiefHarness chief = ChiefOf(1);
  chief.worker(0).phase = Heartbeat::Phase::kComputing;

  chief.Advance(absl::Seconds(12));
  REQUIRE(chief.View().workers.empty());
  chief.Connect(0);

  CHECK(chief.Commands<Verdict>(0).size() == 1);
}

TEST_CASE("coordinator: the time below the minimum begins anew after a generation went on", "[core]") {
  JobPolicy policy;
  policy.wait_for_min = absl::Minutes(1);
  ChiefHarness chief({.workers = 2, .min = 2, .policy = policy});
  chief.StepTo(10);
  for (int i : {0, 1}) chief.worker(i).beating = false;
  chief.Advance(absl::Seconds(20));
  for (int i : {0, 1}) {
    chief.worker(i).beating = true;
    chief.Connect(i);
  }
  REQUIRE(chief.phase() == Phase::kRunning);
  chief.Advance(absl::Minutes(2));

  chief.Kill(1);
  chief.Advance(absl::Seconds(30));

  CHECK_FALSE(chief.ended());
}

// Makes a worker one that runs generation {1, counter} of these members at step 30.
void RunOf(ChiefHarness& chief, int index, uint64_t counter, const std::vector<int>& members) {
  FakeWorker& w = chief.worker(index);
  w.has_state = true;
  w.lineage = "lineage-1";
  w.position = Position{30, 0};
  w.generation = Generation{1, counter};
  w.term = 1;
  w.members.clear();
  for (const int i : members) w.members.push_back(Member{chief.worker(i).id, absl::StrCat("worker-", i), ""});
}

TEST_CASE("coordinator: a straggler of an older generation does not break the one that goes on", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  for (const int i : {0, 1}) RunOf(chief, i, 6, {0, 1});
  RunOf(chief, 2, 4, {2, 0});

  chief.Connect(0);
  chief.Connect(2);  // its claim names worker 0, which runs something newer
  chief.Connect(1);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.View().generation == Generation{1, 6});
  CHECK(chief.Commands<Verdict>(2).size() == 1);
  CHECK(chief.Commands<Verdict>(0).empty());
}

TEST_CASE("coordinator: a chief that listens again goes on with what it formed last, not with an older generation",
          "[core]") {
  ChiefHarness chief = ChiefOf(4);
  const Generation first = chief.View().generation;
  for (const int i : {2, 3}) chief.worker(i).mute = true;
  for (const int i : {2, 3}) chief.Reset(i);  // and the other two form anew
  REQUIRE(chief.worker(0).members.size() == 2);
  for (const int i : {2, 3}) RunOf(chief, i, first.counter, {2, 3});

  chief.Pause(absl::Seconds(30));
  chief.Reset(0);
  REQUIRE(chief.phase() == Phase::kAdopting);
  for (const int i : {2, 3, 0}) chief.Connect(i);

  CHECK(chief.View().generation == Generation{1, 2});
  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: a generation that broke while the chief listened is not adopted", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  for (const int i : {0, 1}) RunOf(chief, i, 6, {0, 1});
  chief.Connect(0);
  chief.worker(0).mute = true;

  chief.Say(0, PeerFailed{Generation{1, 6}, {}, false, "a connection broke"});
  chief.Connect(1);

  CHECK(chief.phase() != Phase::kRunning);
  CHECK(chief.Commands<Verdict>(1).size() == 1);
}

TEST_CASE("coordinator: a first chief has nobody to wait for", "[core]") {
  ChiefHarness chief({.workers = 1, .term = 1});

  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: a chief that meets a newer term ends and tells nobody anything", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.Forget();

  SECTION("in the storage") { chief.Do(TermLost{2}); }
  SECTION("in a Hello") {
    chief.worker(2).term = 9;
    chief.Connect(2);
  }

  CHECK(chief.Last<Exit>().code == 76);
  CHECK(chief.Count<Send>() == 0);
}

}  // namespace
}  // namespace lockstep::chief
