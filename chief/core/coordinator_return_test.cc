// The way back to a state that workers kept in memory (rule 22).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"
#include "chief/core/repair_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// All compare at `step`; `keepers` keep a copy.
void AuditAt(ChiefHarness& chief, uint64_t step, const std::vector<int>& keepers) {
  chief.StepTo(step);
  for (int index : chief.Members()) chief.Audit(index);
  for (int index : keepers) {
    FakeWorker& w = chief.worker(index);
    w.kept.push_back(KeptState{w.lineage, w.position, chief.DigestOf(w)});
    if (w.kept.size() > kMaxKeptStates) w.kept.erase(w.kept.begin());
  }
}

// Of a checkpoint at `step`; nothing is formed before the answers to ReturnTo.
void Record(ChiefHarness& chief, uint64_t step, uint64_t set_aside_from = 0) {
  REQUIRE(chief.Count<RecordRepair>() > 0);
  chief.Do(RepairRecorded{chief.Last<RecordRepair>().lineage,
                          {"lineage-1", step, absl::StrCat("digest-of-", step)},
                          absl::Seconds(1),
                          true,
                          {},
                          set_aside_from});
}

void Answer(ChiefHarness& chief, int index, bool done) {
  const ReturnTo command = chief.LastCommand<ReturnTo>(index);
  FakeWorker& w = chief.worker(index);
  if (done) {
    w.lineage = command.lineage;
    w.position = command.state.position;
  }
  chief.Say(index, Returned{command.state, done, done ? "" : "it is damaged"});
}

// Three workers that compared at 16 to 64, where worker 1 differs, and have a checkpoint of step 20. Workers 0 and 2
// keep a copy of 32, worker 0 alone one of 48.
void Differ(ChiefHarness& chief) {
  AuditAt(chief, 16, {});
  SaveAt(chief, 20);
  AuditAt(chief, 32, {0, 1, 2});
  AuditAt(chief, 48, {0, 1});
  FlipAt(chief, 64, 1);
}

TEST_CASE("coordinator: all go back to the newest state that all had and a worker kept, not to the checkpoint",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  Differ(chief);
  CHECK(chief.Commands<ReturnTo>(0).empty());  // nobody hears of it before it is durable
  Record(chief, 20);

  REQUIRE(chief.Commands<ReturnTo>(0).size() == 1);
  CHECK(chief.LastCommand<ReturnTo>(0).state == KeptState{"lineage-1", {48, 0}, "digest-of-48"});
  CHECK(chief.LastCommand<ReturnTo>(0).lineage == "lineage-1~1");
  CHECK(chief.Commands<ReturnTo>(1).empty());  // the one that is named
  CHECK(chief.Commands<ReturnTo>(2).empty());
  CHECK(chief.Count<WentBack>() == 0);
  CHECK(chief.Commands<Form>(0).size() == 1);
  CHECK_THAT(chief.View().waiting_for, Contains("keeps in memory"));
  Answer(chief, 0, true);
  chief.Advance(absl::Seconds(1));

  const Form form = chief.LastCommand<Form>(0);
  CHECK(form.lineage == "lineage-1~1");
  CHECK(form.position == Position{48, 0});
  CHECK_FALSE(form.restore.has_value());
  CHECK(form.members.at(form.source_rank).incarnation == chief.worker(0).id);
  CHECK(form.receivers.size() == 1);
  const WentBack told = chief.Last<WentBack>();
  CHECK(told.step == 48);
  CHECK(told.from_copy);
  CHECK(told.found_at == 64);
  CHECK(told.names == std::vector<std::string>{"worker-1"});
  CHECK(told.hosts == std::vector<std::string>{"host-1"});
  CHECK_THAT(chief.Said(), Contains("back to step 48, an audited state that workers kept in memory"));
  CHECK(chief.View().agreed_step == 48);
  CHECK(chief.View().published_step == 20);
  CHECK(chief.View().waiting_for.empty());
  // The steps from there on are told again, and saved under the new lineage.
  chief.Forget();
  SaveAt(chief, 60);
  CHECK(chief.Last<StepsAgreed>().lineage == "lineage-1~1");
  CHECK(chief.Last<StepsAgreed>().step == 60);
  CHECK(chief.Last<PublishCommit>().snapshot == SnapshotId{"lineage-1~1", 60, "digest-of-60"});
}

TEST_CASE("coordinator: a copy that cannot be taken up is followed by the next best, in the end the checkpoint",
          "[core][rule22]") {
  const int how = GENERATE(0, 1, 2);  // refused, lost, silent
  const bool older_works = GENERATE(false, true);
  CAPTURE(how, older_works);
  ChiefHarness chief({.workers = 3});
  Differ(chief);
  Record(chief, 20);
  REQUIRE(chief.LastCommand<ReturnTo>(0).state.position.step == 48);

  if (how == 0) Answer(chief, 0, false);
  if (how == 1) {
    chief.Kill(0);
    chief.Advance(AuditReturn::kComesBack);
  }
  if (how == 2) {
    chief.Advance(AuditReturn::kPatience + absl::Seconds(3));
    CHECK_FALSE(chief.worker(0).connected);  // it would break the next generation
  }
  REQUIRE(chief.Commands<ReturnTo>(2).size() == 1);
  CHECK(chief.LastCommand<ReturnTo>(2).state.position.step == 32);
  CHECK(chief.Commands<Form>(2).size() == 1);
  Answer(chief, 2, older_works);
  if (how == 0) Answer(chief, 0, older_works);  // it is asked for both
  chief.Advance(absl::Seconds(4));

  CHECK(chief.Last<WentBack>().step == (older_works ? 32 : 20));
  CHECK(chief.Last<WentBack>().from_copy == older_works);
  REQUIRE(chief.Commands<Form>(2).size() >= 2);
  const Form form = chief.LastCommand<Form>(2);
  CHECK(form.position.step == (older_works ? 32 : 20));
  CHECK(form.restore.has_value() != older_works);
  chief.StepTo(70);
  CHECK(chief.View().agreed_step == 70);
}

TEST_CASE(
    "coordinator: only states that all had, that lie behind the checkpoint and that nobody in the minority holds "
    "are gone back to",
    "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  uint64_t checkpoint = 20;
  uint64_t set_aside_from = 0;
  SECTION("one that was not compared by all") {
    SaveAt(chief, 20);
    chief.StepTo(48);
    for (int i : {0, 1}) chief.Audit(i);
    FakeWorker& w = chief.worker(0);
    w.kept = {KeptState{w.lineage, w.position, chief.DigestOf(w)}};
    FlipAt(chief, 64, 1);
  }
  SECTION("one with other bits than all had") {
    SaveAt(chief, 20);
    AuditAt(chief, 48, {0});
    chief.worker(0).kept[0].digest = "damaged";
    FlipAt(chief, 64, 1);
  }
  SECTION("one of a lineage that the job left") {
    SaveAt(chief, 20);
    AuditAt(chief, 48, {0});
    chief.worker(0).kept[0].lineage = "lineage-0";
    FlipAt(chief, 64, 1);
  }
  SECTION("one of the worker that differs") {
    SaveAt(chief, 20);
    AuditAt(chief, 48, {1});
    FlipAt(chief, 64, 1);
  }
  SECTION("one of a worker that leaves") {
    SaveAt(chief, 20);
    AuditAt(chief, 48, {0});
    FlipAt(chief, 64, 1);
    chief.worker(0).leaving = true;
    chief.Say(0, LeaveIntent{absl::Seconds(20)});
  }
  SECTION("one that is older than the checkpoint") {
    AuditAt(chief, 16, {0, 1, 2});
    SaveAt(chief, 20);
    FlipAt(chief, 64, 1);
  }
  SECTION("one behind a checkpoint that was set aside") {
    SaveAt(chief, 20);
    AuditAt(chief, 48, {0});
    FlipAt(chief, 64, 1);
    set_aside_from = 40;
  }
  SECTION("one that the checkpoint is as new as") {
    AuditAt(chief, 48, {0});
    FlipAt(chief, 64, 1);
    checkpoint = 48;
  }

  Record(chief, checkpoint, set_aside_from);

  CHECK(chief.Commands<ReturnTo>(0).empty());
  chief.Advance(absl::Seconds(1));
  CHECK(chief.Last<WentBack>().step == checkpoint);
  CHECK_FALSE(chief.Last<WentBack>().from_copy);
  CHECK(chief.LastCommand<Form>(2).restore->step == checkpoint);
}

TEST_CASE("coordinator: a chief that follows one which died on the way back goes on from what the record allows",
          "[core][rule22]") {
  // The record says that lineage-1~1 begins after the checkpoint of step 20. Whether a worker has taken up its copy
  // before the chief died, only that worker knows.
  const bool taken_up = GENERATE(false, true);
  JobPolicy policy;
  ChiefHarness chief(
      {.term = 2, .checkpoint_step = 20, .plan = "plan-1", .policy = policy, .checkpoint_lineage = "lineage-0"});
  FakeWorker& w = chief.worker(0);
  w.term = 1;
  w.has_state = true;
  // The harness's job is lineage-1; here that is the one that the repair of lineage-0 began.
  w.lineage = taken_up ? "lineage-1" : "lineage-0";
  w.position = Position{taken_up ? 48u : 66u, 0};
  w.kept = {KeptState{w.lineage, {48, 0}, "digest-of-48"}};
  chief.Connect(0);
  chief.Advance(absl::Seconds(40));

  CHECK(chief.Commands<ReturnTo>(0).empty());  // what all had, this chief does not know
  const Form form = chief.LastCommand<Form>(0);
  CHECK(form.lineage == "lineage-1");
  CHECK(form.restore.has_value() != taken_up);
  CHECK(form.position.step == (taken_up ? 48 : 20));
}

TEST_CASE("coordinator: the second way back in a row trusts the disk alone", "[core][rule22]") {
  ChiefHarness chief({.workers = 3, .end_step = 5000});
  Differ(chief);
  Record(chief, 20);
  Answer(chief, 0, true);
  chief.Advance(absl::Seconds(1));
  chief.worker(0).kept.clear();
  AuditAt(chief, 80, {0, 2});
  FlipAt(chief, 96, 2);
  REQUIRE(chief.Count<RecordRepair>() == 2);

  Record(chief, 20);

  CHECK(chief.Commands<ReturnTo>(0).size() == 1);
  CHECK(chief.Last<WentBack>().step == 20);
  CHECK_FALSE(chief.Last<WentBack>().from_copy);
}

TEST_CASE("coordinator: a worker that takes up its copy too late is lost, and its answer counts for nothing",
          "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  AuditAt(chief, 48, {0});
  FlipAt(chief, 64, 1);
  Record(chief, 0);
  chief.Advance(AuditReturn::kPatience + absl::Seconds(3));
  REQUIRE(chief.LastCommand<Form>(2).restore.has_value());
  CHECK_FALSE(chief.worker(0).connected);
  CHECK(chief.Commands<Form>(0).size() == 1);  // the one of the beginning

  chief.Say(0, Returned{chief.LastCommand<ReturnTo>(0).state, true, ""});
  chief.StepTo(70);

  CHECK(chief.View().agreed_step == 70);
}

TEST_CASE("coordinator: who took up its copy and lost its session before it could say so has answered",
          "[core][rule22]") {
  const bool taken_up = GENERATE(true, false);
  ChiefHarness chief({.workers = 3});
  Differ(chief);
  Record(chief, 20);
  const ReturnTo command = chief.LastCommand<ReturnTo>(0);
  REQUIRE(command.state.position.step == 48);
  chief.Reset(0);
  CHECK(chief.Commands<ReturnTo>(2).empty());

  FakeWorker& w = chief.worker(0);
  if (taken_up) {
    w.lineage = command.lineage;
    w.position = command.state.position;
  }
  chief.Connect(0);
  if (!taken_up) {
    // The next state is asked for, of whoever has it.
    REQUIRE(chief.LastCommand<ReturnTo>(2).state.position.step == 32);
    Answer(chief, 2, true);
    Answer(chief, 0, false);
  }
  chief.Advance(absl::Seconds(4));

  CHECK(chief.Last<WentBack>().step == (taken_up ? 48 : 32));
  CHECK(chief.Last<WentBack>().from_copy);
  chief.MeetAtBoundary();  // the two have met since
  CHECK(chief.LastCommand<Form>(2).position.step == (taken_up ? 48 : 32));
  CHECK(chief.View().agreed_step == (taken_up ? 48 : 32));
}

TEST_CASE("coordinator: a stop does not wait for copies", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  Differ(chief);
  Record(chief, 20);
  REQUIRE(chief.Commands<ReturnTo>(0).size() == 1);

  chief.Do(StopRequested{"SIGTERM", 75});
  chief.Advance(absl::Seconds(1));

  CHECK(chief.Last<WentBack>().step == 20);
  CHECK(chief.phase() != Phase::kWaiting);
}

TEST_CASE("coordinator: a copy of a step after the difference is of a state that followed from it", "[core][rule22]") {
  ChiefHarness chief({.workers = 3});
  AuditAt(chief, 16, {});
  SaveAt(chief, 20);
  AuditAt(chief, 32, {0});
  chief.Reset(2);
  chief.Advance(absl::Seconds(10));
  chief.MeetAtBoundary();
  REQUIRE(chief.Members().size() == 2);
  AuditAt(chief, 48, {0});
  FakeWorker& late = chief.worker(2);
  late.hello.differ = StatesDiffer{"lineage-1", 36};

  chief.Connect(2);
  chief.Advance(absl::Seconds(1));
  Record(chief, 20);

  CHECK(chief.LastCommand<ReturnTo>(0).state.position == Position{32, 0});
}

}  // namespace
}  // namespace lockstep::chief
