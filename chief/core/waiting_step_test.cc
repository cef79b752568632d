#include "chief/core/waiting_step.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Kind = WaitingStep::Kind;

// Two workers that reach each other; step 10 of 100 is published.
struct Waiting : CoreFixture {
  Waiting() {
    for (int index = 0; index < 2; ++index) Add(index);
    Meet({0, 1});
    policy.training.end_step = 100;
    policy.expected_workers = 2;
    recovered.checkpoint = SnapshotId{"lineage", 10, "ten"};
    life.Begin(now, term, policy);
    life.AdvanceAdopting(TickAfter(absl::Minutes(1)), "lineage");
    life.AdvanceBreaking(Now(), 0);
    gathering.LastCall(now + absl::Seconds(30));
  }
  WaitingStep Next(const CoreContext& context) {
    const CheckpointTracker saves(recovered);
    const TeamChoice teams({roster, pairs, history, nullptr, saves.FirstUnsaved(), Capacity(policy), now});
    return NextWaitingStep(context, life, gathering, teams, saves, end);
  }
  WaitingStep Next() { return Next(Now()); }

  RecoveredState recovered;
  GenerationLife life;
  Gathering gathering;
  JobEnd end;
};

TEST_CASE("waiting step: all that are expected are here: they form from the checkpoint", "[core]") {
  Waiting test;
  const WaitingStep next = test.Next();
  CHECK(next.kind == Kind::kForm);
  CHECK(next.team.members.size() == 2);

  test.policy.expected_workers = 3;
  CHECK(test.Next().kind == Kind::kWait);
  CHECK(test.Next(test.TickAfter(absl::Seconds(30))).kind == Kind::kForm);
}

TEST_CASE("waiting step: a live state waits for nobody", "[core]") {
  Waiting test;
  test.policy.expected_workers = 3;
  test.Hold(1, 12);
  CHECK(test.Next().kind == Kind::kForm);
}

TEST_CASE("waiting step: the storage is not read while somebody may hold more", "[core]") {
  Waiting test;
  test.Add(2).busy = Generation{2, 9};
  CHECK(test.Next().kind == Kind::kWait);
  test.worker(2).busy = Generation();
  CHECK(test.Next().kind == Kind::kForm);
}

TEST_CASE("waiting step: below the minimum the job is parked, saves what it holds, and gives up", "[core]") {
  Waiting test;
  test.policy.min_workers = 3;
  test.policy.wait_for_min = absl::Minutes(10);
  CHECK(test.Next().kind == Kind::kWait);
  test.Hold(0, 12);

  const WaitingStep next = test.Next(test.TickAfter(absl::Minutes(10)));

  CHECK(next.kind == Kind::kSave);
  CHECK(next.position == Position{12, 0});
  test.recovered.checkpoint.step = 12;
  CHECK(test.Next(test.TickAfter(absl::ZeroDuration())).kind == Kind::kGiveUp);
  test.policy.min_workers = 2;
  CHECK(test.Next().kind == Kind::kForm);
}

TEST_CASE("waiting step: what a stop ends is saved first", "[core]") {
  Waiting test;
  test.Hold(0, 12);
  test.end.Stop({0, "stop requested"});
  CHECK(test.Next().kind == Kind::kSave);
  CHECK(test.Next().reason == "stop requested");
  test.recovered.checkpoint.step = 12;
  CHECK(test.Next().kind == Kind::kFinish);
}

TEST_CASE("waiting step: the last step is saved, with its evaluation", "[core]") {
  Waiting test;
  test.policy.training.eval_slices = 4;
  test.Hold(0, 100);
  CHECK(test.Next().kind == Kind::kForm);  // the evaluation is not done: it is another generation's
  test.worker(0).held->position.evaluated_slices = 4;
  CHECK(test.Next().kind == Kind::kSave);
  test.recovered.checkpoint.step = 100;
  CHECK(test.Next().kind == Kind::kFinish);
  test.recovered.evaluated = false;
  CHECK(test.Next().kind == Kind::kSave);
}

TEST_CASE("waiting step: a test that decides who they are is waited for", "[core]") {
  Waiting test;
  test.pairs.Suspect(test.Id(0), test.Id(1), false, test.now);
  CHECK(test.Next().kind == Kind::kWait);
}

TEST_CASE("waiting step: what only a worker apart from the others holds is saved first", "[core]") {
  Waiting test;
  test.Add(2);
  test.Hold(2, 12);
  for (int index : {0, 1}) test.pairs.Failed(test.Id(2), test.Id(index), test.now);

  const WaitingStep next = test.Next();

  CHECK(next.kind == Kind::kSave);
  CHECK(next.position == Position{12, 0});
  CHECK_THAT(next.reason, Contains("reaches fewer workers"));
}

TEST_CASE("waiting step: restores that fail again and again end the job", "[core]") {
  Waiting test;
  for (uint32_t failure = 1; failure <= GenerationLife::kFailedRestoresBeforeEnd; ++failure) {
    Form form;
    form.restore = test.recovered.checkpoint;
    test.life.SendForm(test.Now(), form, test.All(), 10);
    const PeerFailed damaged{test.life.current().id, {}, false, "digest", true};
    test.life.Break(test.Now(), test.life.Accuse(test.Now(), test.worker(0), damaged), 10);
    for (Worker* worker : test.All()) test.life.Rest(*worker, worker->busy, std::nullopt);
    test.life.AdvanceBreaking(test.Now(), 10);
    test.pairs = Reachability();
    test.Meet({0, 1});
    test.now += absl::Minutes(1);  // any pause is over
    const WaitingStep next = test.Next();
    CHECK((next.kind == Kind::kDamaged) == (failure == GenerationLife::kFailedRestoresBeforeEnd));
    CHECK((next.kind == Kind::kForm) == (failure < GenerationLife::kFailedRestoresBeforeEnd));
  }
}

}  // namespace
}  // namespace lockstep::chief
