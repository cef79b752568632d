// Copies of the state at audits, and the way back to one of them (rule 22).
#include <catch2/catch.hpp>

#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

// In a generation of two, with audits every 4 steps and room for copies.
struct Keeper : WorkerHarness {
  Keeper() {
    policy.audit_every_steps = 4;
    Join();
    Command(lockstep::Prepare{"graph", "plan", ""});
    Give(Prepared{Ready{"plan", "data", absl::Milliseconds(5), 100}, /*may_keep=*/true});
    FormAt(1, 2, 0, {10, 0});
  }
  // Up to `step`, which is audited. The copy, where one was asked for, takes `cost`.
  void AuditAt(uint64_t step, absl::Duration cost = absl::Milliseconds(1)) {
    StepTo(step - 1);
    Finish(step, Word());
    REQUIRE(Has<ComputeDigest>());
    kept = !Last<ComputeDigest>().keep_as.empty();
    const Position position{step, 0};
    dropped = Has<DropKept>() ? Last<DropKept>().copy.step : 0;
    Give(DigestComputed{position, DigestOf(step), kept, cost});
  }
  static Digest DigestOf(uint64_t step) { return absl::StrCat("d", step); }
  // The chief ends the generation; what the worker says then.
  VerdictAck Rest() {
    const Generation generation = core.generation();
    Command(Verdict{"replicas differ"}, generation);
    Give(ComputingStopped{generation});
    return Message<VerdictAck>();
  }
  std::vector<uint64_t> StepsOf(const std::vector<KeptState>& states) {
    std::vector<uint64_t> steps;
    for (const KeptState& state : states) steps.push_back(state.position.step);
    return steps;
  }

  bool kept = false;
  uint64_t dropped = 0;
};

TEST_CASE("session: who met at a boundary goes back as well", "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  REQUIRE(worker.kept);
  ControlWord word = worker.Word();
  word.slots[0].requests[static_cast<size_t>(RequestKind::kForm)] = 7;
  worker.Finish(13, word);
  REQUIRE(worker.core.phase() == SessionCore::Phase::kHolding);

  worker.Command(ReturnTo{{"lineage", {12, 0}, Keeper::DigestOf(12)}, "lineage~1"});

  CHECK(worker.core.phase() == SessionCore::Phase::kReturning);
  CHECK(worker.Last<TakeUpKept>().copy.step == 12);
}

TEST_CASE("session: a way back that names no new lineage would give an applied step up, and is refused",
          "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  worker.StepTo(13);
  const VerdictAck ack = worker.Rest();

  worker.Command(ReturnTo{ack.kept.at(0), ack.lineage});

  CHECK_FALSE(worker.Message<Returned>().done);
  CHECK(worker.Message<Returned>().message == "it would go back from step 13 to step 12 within its lineage");
  CHECK_FALSE(worker.Has<TakeUpKept>());
  CHECK(worker.core.phase() == SessionCore::Phase::kIdle);
}

TEST_CASE("session: a copy that is never taken up ends the process, with a chief or without one", "[session][rule22]") {
  const bool chief_is_there = GENERATE(true, false);
  Keeper worker;
  worker.AuditAt(12);
  const VerdictAck ack = worker.Rest();
  worker.Command(ReturnTo{ack.kept.at(0), "line~1"});
  if (!chief_is_there) worker.Give(ChiefDisconnected{"gone"});
  CHECK(worker.core.NextDeadline() <= worker.now + SessionCore::kReturnLimit);

  worker.Wait(SessionCore::kReturnLimit);

  REQUIRE(worker.Has<Exit>());
  CHECK(worker.Last<Exit>().code == kExitPreempted);
  CHECK(worker.Last<Exit>().stuck);
}

TEST_CASE("session: the newest two copies are kept, as far apart as the policy says, and told with the acknowledgement",
          "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  CHECK(worker.kept);
  worker.Wait(absl::Seconds(1));
  worker.AuditAt(16);
  CHECK_FALSE(worker.kept);
  worker.Wait(KeepPolicy::kApart);
  worker.AuditAt(20);
  CHECK(worker.kept);
  CHECK(worker.dropped == 0);
  worker.Wait(KeepPolicy::kApart);
  worker.AuditAt(24);
  CHECK(worker.kept);
  CHECK(worker.dropped == 12);

  const VerdictAck ack = worker.Rest();

  CHECK(worker.StepsOf(ack.kept) == std::vector<uint64_t>{20, 24});
  CHECK(ack.kept.at(0) == KeptState{"line", {20, 0}, "d20"});
  worker.Give(ChiefDisconnected{"gone"});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  CHECK(worker.StepsOf(worker.Message<Hello>().kept) == std::vector<uint64_t>{20, 24});
}

TEST_CASE("session: no copy is made alone, without a chief, or where memory does not suffice", "[session][rule22]") {
  Keeper worker;
  SECTION("alone") {
    worker.Rest();
    worker.FormAt(2, 1, 0, {10, 0});
  }
  SECTION("without a chief") { worker.Give(ChiefDisconnected{"gone"}); }
  SECTION("it was too much") {
    worker.StepTo(11);
    worker.Finish(12, worker.Word());
    worker.Give(DigestComputed{{12, 0}, "d12", false, {}, /*keep_failed=*/true});
    worker.AuditAt(16);
    CHECK_FALSE(worker.kept);
    return;
  }
  SECTION("the plan has no room") {
    worker.Rest();
    worker.Prepare();
    worker.FormAt(2, 2, 0, {10, 0});
  }
  worker.AuditAt(12);
  CHECK_FALSE(worker.kept);
}

TEST_CASE("session: on the chief's word a copy becomes the state, of the new lineage", "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  worker.Wait(KeepPolicy::kApart);
  worker.AuditAt(16);
  worker.StepTo(18);
  const VerdictAck ack = worker.Rest();
  CHECK(ack.position.step == 18);

  worker.Command(ReturnTo{ack.kept.at(0), "line~1"});
  REQUIRE(worker.Has<TakeUpKept>());
  CHECK(worker.Last<TakeUpKept>().copy == SnapshotId{"line", 12, "d12"});
  CHECK_FALSE(worker.Told<Returned>());
  worker.Give(KeptTakenUp{{"line", 12, "d12"}, ""});

  CHECK(worker.Message<Returned>() == Returned{ack.kept.at(0), true, ""});
  CHECK(worker.core.lineage() == "line~1");
  CHECK(worker.core.position() == Position{12, 0});
  // What was kept later is of the history that was given up.
  CHECK(worker.Last<DropKept>().copy.step == 16);
  worker.Give(ChiefDisconnected{"gone"});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  CHECK(worker.Message<Hello>().position == Position{12, 0});
  CHECK(worker.Message<Hello>().lineage == "line~1");
  CHECK(worker.Message<Hello>().kept == std::vector<KeptState>{{"line~1", {12, 0}, "d12"}});
}

TEST_CASE("session: a copy that cannot be taken up leaves the state as it was, and the chief hears why",
          "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  worker.StepTo(14);
  const VerdictAck ack = worker.Rest();

  SECTION("damaged") {
    worker.Command(ReturnTo{ack.kept.at(0), "line~1"});
    worker.Give(KeptTakenUp{{"line", 12, "d12"}, "it has digest x"});
    CHECK(worker.Message<Returned>() == Returned{ack.kept.at(0), false, "it has digest x"});
    CHECK(worker.Has<DropKept>());
    worker.Command(ReturnTo{ack.kept.at(0), "line~1"});
  }
  SECTION("not held") { worker.Command(ReturnTo{KeptState{"line", {12, 0}, "other"}, "line~1"}); }
  CHECK_FALSE(worker.Has<TakeUpKept>());
  CHECK_FALSE(worker.Message<Returned>().done);
  CHECK(worker.core.lineage() == "line");
  CHECK(worker.core.position() == Position{14, 0});
}

TEST_CASE("session: while a copy is taken up no Hello says where the worker stands, and no generation is formed",
          "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  worker.StepTo(14);
  const VerdictAck ack = worker.Rest();
  worker.Command(ReturnTo{ack.kept.at(0), "line~1"});

  worker.GiveForm(2, 2, 0, {14, 0});
  CHECK(worker.Told<CommandRejected>());
  worker.Command(ReturnTo{ack.kept.at(0), "line~1"});
  CHECK_FALSE(worker.Message<Returned>().done);
  worker.Give(ChiefDisconnected{"gone"});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  CHECK_FALSE(worker.Told<Hello>());
  worker.Give(KeptTakenUp{{"line", 12, "d12"}, ""});

  REQUIRE(worker.Told<Hello>());
  CHECK(worker.Message<Hello>().position == Position{12, 0});
}

TEST_CASE("session: who restores the state of another lineage keeps no copies of the one before", "[session][rule22]") {
  Keeper worker;
  worker.AuditAt(12);
  worker.Rest();
  Form form;
  form.lineage = "line~1";
  form.position = {8, 0};
  form.members = {Member{{0, WorkerHarness::kSelf}, "w", "a"}, Member{{0, 101}, "w", "a"}};
  form.restore = SnapshotId{"line", 8, "d8"};
  worker.Command(form, Generation{WorkerHarness::kTerm, 2});
  worker.Give(CommunicatorFormed{worker.core.generation()});
  worker.Give(StateSynced{worker.core.generation(), {8, 0}, "d8"});

  CHECK(worker.Last<DropKept>().copy == SnapshotId{"line", 12, "d12"});
  CHECK(worker.Rest().kept.empty());
}

}  // namespace
}  // namespace lockstep::worker
