// The session core between evaluations: which state is the best, when the job ends, and what newcomers learn of it.
#include <catch2/catch.hpp>

#include "common/status/exit_code.h"
#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

// Evaluates every 2 steps in 2 slices.
WorkerHarness Evaluating(bool keep_best, uint64_t patience) {
  WorkerHarness worker;
  worker.policy.eval_every_steps = 2;
  worker.policy.eval_slices = 2;
  worker.policy.evaluation = {.id = 5, .keep_best = keep_best, .patience = patience};
  worker.Join();
  worker.Prepare();
  worker.FormAt(1, 2, 0, {11, 0});
  return worker;
}

// The evaluation of the step where the worker stands gives this mean loss.
void Evaluate(WorkerHarness& worker, double loss) {
  for (uint64_t slice = 0; slice < 2; ++slice) {
    const uint64_t step = worker.core.position().step;
    worker.Give(SliceFinished{worker.core.generation(), step, worker.Word(),
                              SliceResult{slice, {.loss = loss, .denominator = 1}}});
  }
}

}  // namespace

TEST_CASE("session: members wait at the best state until it is published", "[session][rule27]") {
  WorkerHarness worker = Evaluating(true, 0);
  worker.StepTo(12);
  Evaluate(worker, 3);

  REQUIRE(worker.Has<TakeSnapshot>());
  CHECK(worker.core.phase() == SessionCore::Phase::kHolding);
  worker.Give(SnapshotDone{{"line", 12, "d12"}});
  const SnapshotTaken taken = worker.Message<SnapshotTaken>();
  CHECK(taken.cause == SnapshotCause::kBest);
  CHECK(taken.ledger ==
        EvaluationLedger{.rule = 5, .step = 12, .value = 3, .best_step = 12, .best_value = 3, .reference = 3});

  SECTION("then they go on, and a worse state is not waited for") {
    worker.Command(SnapshotEnded{{"line", 12, "d12"}, true});
    CHECK(worker.Last<RunStep>().step == 13);
    worker.StepTo(14);
    Evaluate(worker, 4);
    CHECK_FALSE(worker.Has<TakeSnapshot>());
    CHECK(worker.Last<RunStep>().step == 15);
  }
  SECTION("also when the chief is lost, and the next one is told") {
    worker.Give(ChiefDisconnected{"killed", false});
    CHECK(worker.core.phase() == SessionCore::Phase::kHolding);
    worker.Join(4);
    CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kBest);
    worker.Command(SnapshotEnded{{"line", 12, "d12"}, true}, {}, 4);
    CHECK(worker.Last<RunStep>().step == 13);
  }
}

TEST_CASE("session: rank 0 lets the model write after an evaluation, before it goes on", "[session]") {
  for (const uint32_t rank : {0u, 1u}) {
    WorkerHarness worker;
    worker.policy.eval_every_steps = 2;
    worker.policy.eval_slices = 2;
    worker.policy.samples_text = true;
    worker.Join();
    worker.Prepare();
    worker.FormAt(1, 2, rank, {11, 0});
    worker.StepTo(12);
    Evaluate(worker, 3);

    REQUIRE(worker.Last<RunStep>().step == 13);
    CHECK(worker.Has<WriteSample>() == (rank == 0));
    worker.Give(TextWritten{{3, 1}, 12, "In the"});
    CHECK(worker.Message<TextSample>() == TextSample{"line", 12, "In the"});
    worker.Give(TextWritten{{3, 7}, 12, "of a generation that is over"});
    CHECK_FALSE(worker.Told<TextSample>());
  }
}

TEST_CASE("session: a chief that was away hears of the evaluations it missed, oldest first", "[session]") {
  WorkerHarness worker = Evaluating(false, 0);
  worker.Give(ChiefDisconnected{"killed", false});
  for (const uint64_t step : {12u, 14u}) {
    worker.StepTo(step);
    Evaluate(worker, 3);
  }

  worker.Join(4);

  std::vector<uint64_t> steps;
  for (const Action& action : worker.last) {
    const Send* send = std::get_if<Send>(&action);
    const EvalReport* report = send == nullptr ? nullptr : std::get_if<EvalReport>(&send->message);
    if (report != nullptr) steps.push_back(report->step);
  }
  CHECK(steps == std::vector<uint64_t>{12, 14});
}

TEST_CASE("session: the job ends at the evaluation that exhausts the patience", "[session][rule27]") {
  WorkerHarness worker = Evaluating(false, 2);
  worker.StepTo(12);
  Evaluate(worker, 3);
  worker.StepTo(14);
  Evaluate(worker, 4);
  CHECK(worker.Last<RunStep>().step == 15);
  worker.StepTo(16);
  Evaluate(worker, 4);

  REQUIRE(worker.Has<TakeSnapshot>());
  worker.Give(SnapshotDone{{"line", 16, "d16"}});
  CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kEnd);
  worker.Command(Done{0, 16, "d16"});
  CHECK(worker.ExitCode() == kExitDone);
}

TEST_CASE("session: a newcomer takes over what was evaluated, within an evaluation as well", "[session][rule27]") {
  WorkerHarness worker;
  worker.policy.eval_every_steps = 2;
  worker.policy.eval_slices = 2;
  worker.policy.evaluation = {.id = 5, .patience = 1};
  worker.Join();
  worker.Prepare();
  worker.GiveForm(1, 2, 0, {12, 1});
  worker.Give(CommunicatorFormed{{3, 1}});
  const EvaluationLedger ledger{.rule = 5, .step = 10, .value = 2, .best_step = 10, .best_value = 2, .reference = 2};

  worker.Give(StateSynced{{3, 1}, {12, 1}, "digest", {ledger, {.loss = 4, .denominator = 1}}});
  worker.Give(SliceFinished{{3, 1}, 12, worker.Word(), SliceResult{1, {.loss = 2, .denominator = 1}}});

  // (4 + 2) / 2 is worse than 2: that was the last chance.
  REQUIRE(worker.Has<TakeSnapshot>());
  worker.Give(SnapshotDone{{"line", 12, "d12"}});
  CHECK(worker.Message<SnapshotTaken>().ledger.value == 3);
  CHECK(worker.Message<SnapshotTaken>().cause == SnapshotCause::kEnd);
}

TEST_CASE("session: a source sends its progress, a restore takes the checkpoint's", "[session][rule27]") {
  WorkerHarness worker = Evaluating(false, 3);
  worker.StepTo(12);
  Evaluate(worker, 3);
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  Form form;
  form.lineage = "line";
  form.members = {{{0, WorkerHarness::kSelf}, "w", "a"}, {{0, 101}, "w", "a"}};

  SECTION("live") {
    form.position = {12, 2};
    form.receivers = {1};
    worker.Command(form, {3, 2});
    worker.Give(CommunicatorFormed{{3, 2}});
    CHECK(worker.Last<SyncState>().progress.ledger.best_step == 12);
    CHECK(worker.Last<SyncState>().progress.sums.loss == 6);
  }
  SECTION("from the checkpoint") {
    form.lineage = "other";
    form.position = {8, 2};
    form.restore = SnapshotId{"other", 8, "d8"};
    form.ledger = {.rule = 5, .step = 8, .best_step = 8};
    worker.Command(form, {3, 2});
    worker.Give(CommunicatorFormed{{3, 2}});
    CHECK(worker.Last<SyncState>().progress == EvaluationProgress{form.ledger, {}});
  }
}

TEST_CASE("session: nobody waits for a text who is asked to leave or to meet", "[session]") {
  WorkerHarness worker = Evaluating(false, 0);
  worker.policy.samples_text = true;
  worker.Give(ChiefDisconnected{"killed", false});
  worker.Join(4);
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.FormAt(2, 2, 0, {11, 0}, 4);
  worker.Command(BoundaryRequest{RequestKind::kSnapshot, 1}, worker.core.generation(), 4);
  CHECK_FALSE(worker.Has<CancelSample>());

  SECTION("to leave") { worker.Give(TermSignal{absl::Seconds(20)}); }
  SECTION("to meet") { worker.Command(BoundaryRequest{RequestKind::kForm, 2}, worker.core.generation(), 4); }

  CHECK(worker.Has<CancelSample>());
}

TEST_CASE("session: who becomes rank 0 tells what the one before may not have delivered", "[session]") {
  WorkerHarness worker = Evaluating(false, 0);
  worker.StepTo(12);
  Evaluate(worker, 3);
  worker.Command(Verdict{"a peer died"}, {3, 1});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.FormAt(2, 1, 0, {12, 2});

  REQUIRE(worker.Told<EvalReport>());
  CHECK(worker.Message<EvalReport>().slices.size() == 2);
}

TEST_CASE("session: other settings of a new chief begin with the next generation", "[session]") {
  WorkerHarness worker = Evaluating(false, 0);
  worker.Give(ChiefDisconnected{"killed", false});
  worker.policy.end_step = 13;

  worker.Join(4);
  CHECK(worker.Told<PeerFailed>());
  CHECK(worker.core.phase() == SessionCore::Phase::kStopping);
  // The step under way still counts, and is judged by what all members knew.
  worker.Finish(12, worker.Word());
  CHECK_FALSE(worker.Has<RunSlice>());
  worker.Give(ComputingStopped{{3, 1}, false});
  Form form;
  form.lineage = "line";
  form.position = {12, 0};
  form.members = {{{0, WorkerHarness::kSelf}, "w", "a"}};
  worker.Command(form, {4, 1}, 4);
  worker.Give(CommunicatorFormed{{4, 1}});
  Evaluate(worker, 1);
  worker.Finish(13, worker.Word());

  CHECK(worker.Last<RunSlice>().slice == 0);  // of the last step, which now is 13
}

TEST_CASE("session: the same settings of a new chief disturb nobody", "[session]") {
  WorkerHarness worker = Evaluating(true, 3);
  worker.Give(ChiefDisconnected{"killed", false});

  worker.Join(4);

  CHECK(worker.core.phase() == SessionCore::Phase::kRunning);
}

}  // namespace lockstep::worker
