// A restarted chief and more members than name the others: lists of a few, digests of all (rule 14).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

constexpr int kCrowd = 5;

// Workers that run a generation of term 1 at step 30, each with a snapshot of step 28; the lowest ranks are 0, 1 and 2.
void RunCrowdUnderOldChief(ChiefHarness& chief) {
  std::vector<Member> members;
  for (int i = 0; i < kCrowd; ++i) {
    FakeWorker& w = chief.worker(i);
    members.push_back(Member{w.id, absl::StrCat("worker-", i), w.hello.peer_address});
    w.has_state = true;
    w.lineage = "lineage-1";
    w.position = Position{30, 0};
    w.generation = Generation{1, 4};
    w.term = 1;
    w.snapshots = {SnapshotId{"lineage-1", 28, "digest-of-28"}};
  }
  for (int i = 0; i < kCrowd; ++i) chief.worker(i).members = members;
}

TEST_CASE("coordinator: members that are named by their digest alone are adopted, whoever comes first", "[core]") {
  ChiefHarness chief({.term = 2, .plan = "plan-1"});
  RunCrowdUnderOldChief(chief);
  const std::vector<int> order =
      GENERATE(std::vector<int>{4, 3, 2, 1, 0}, std::vector<int>{0, 1, 2, 3, 4}, std::vector<int>{3, 0, 4, 1, 2});

  for (const int i : order) {
    CHECK(chief.phase() == Phase::kAdopting);
    chief.Connect(i);
  }

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.View().generation == Generation{1, 4});
  for (int i = 0; i < kCrowd; ++i) CHECK(chief.Commands<Verdict>(i).empty());
  chief.StepTo(31);
  CHECK(chief.View().agreed_step == 31);
  // The save that the last chief did not finish is one of all members, whoever told of it first.
  REQUIRE(chief.Last<PublishCommit>().snapshot.step == 28);
  CHECK(chief.Last<StoreManifest>().shares == kCrowd);
  for (int i = 0; i < kCrowd; ++i) CHECK(chief.worker(i).snapshots.empty());
}

TEST_CASE("coordinator: a generation whose members nobody names is formed anew, and its snapshots are saved",
          "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1"});
  RunCrowdUnderOldChief(chief);

  for (const int i : {3, 4}) chief.Connect(i);
  chief.Advance(absl::Seconds(10));

  CHECK(chief.Commands<Verdict>(3).size() == 1);
  CHECK(chief.LastCommand<Form>(3).position == Position{30, 0});
  CHECK(chief.Last<PublishCommit>().snapshot.step == 28);
  for (const int i : {3, 4}) CHECK(chief.worker(i).snapshots.empty());
}

TEST_CASE("coordinator: a snapshot for which there is no room before members are named is given up aloud", "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1"});
  RunCrowdUnderOldChief(chief);
  chief.Connect(4);
  for (uint64_t step = 1; step <= kMaxHeldSnapshots; ++step) {
    CHECK(chief.Commands<SnapshotEnded>(4).empty());
    const SnapshotId snapshot{"lineage-1", step, "digest"};
    chief.Say(4, SnapshotTaken{chief.worker(4).generation, snapshot, SnapshotCause::kDue});
  }
  CHECK(chief.Commands<SnapshotEnded>(4).size() == 1);
}

TEST_CASE("coordinator: a member whose digest is of other members does not go on with them", "[core]") {
  ChiefHarness chief({.min = 1, .term = 2, .plan = "plan-1"});
  RunCrowdUnderOldChief(chief);
  chief.worker(4).members[3].incarnation = Incarnation{9, 9};

  for (int i = 0; i < kCrowd; ++i) chief.Connect(i);

  CHECK(chief.phase() == Phase::kAdopting);
  chief.Advance(absl::Seconds(10));
  CHECK(chief.Commands<Verdict>(0).size() == 1);
  CHECK(chief.LastCommand<Form>(0).position == Position{30, 0});
}

TEST_CASE("coordinator: a chief that was paused goes on with members that come back by their digest alone", "[core]") {
  ChiefHarness chief({.workers = kCrowd});
  chief.StepTo(10);
  chief.Forget();
  REQUIRE(chief.worker(4).members.size() == kCrowd);

  chief.Pause(absl::Seconds(30));
  chief.Reset(4, "it gave up a chief that hangs");
  chief.Connect(4);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.View().generation == Generation{1, 1});
  for (int i = 0; i < kCrowd; ++i) CHECK(chief.Commands<Verdict>(i).empty());
}

TEST_CASE("coordinator: a member whose session comes and goes does not keep a new chief listening for ever", "[core]") {
  ChiefHarness chief({.expected = 2, .term = 2, .plan = "plan-1"});
  chief.Connect(1);
  FakeWorker& flaps = chief.worker(0);
  flaps.has_state = true;
  flaps.lineage = "lineage-1";
  flaps.position = Position{10, 0};
  flaps.generation = Generation{1, 5};
  flaps.members = {Member{flaps.id, "worker-0", "10.0.0.0:1"}, Member{{9, 9}, "gone", "10.0.0.9:1"}};

  for (int round = 0; round < 12 && chief.Commands<Form>(1).empty(); ++round) {
    chief.Connect(0);
    chief.Advance(absl::Seconds(2));
    if (flaps.connected) chief.Reset(0);
    chief.Advance(absl::Seconds(6));
  }

  CHECK_FALSE(chief.Commands<Form>(1).empty());
}

}  // namespace
}  // namespace lockstep::chief
