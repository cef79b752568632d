// Engine: steps, slices of evaluations, samples of text, and snapshots of what they left.
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "worker/device/device_lost.h"
#include "worker/session/engine.h"

namespace lockstep::worker {

void Engine::Do(const RunStep& action) {
  const auto communicator = calls_.CommunicatorOf(action.generation);
  if (!communicator.ok()) return Fail(action.generation, communicator.status());
  const NowDoing stepping("step ", action.step, ", rank ", (*communicator)->rank(), " of ", (*communicator)->size());
  const absl::Time begin = SteadyNow();
  looks_.BeginWork();
  absl::StatusOr<StepResult> result = replica_->runner().RunStep(**communicator, static_cast<int64_t>(action.step),
                                                                 action.slot, static_cast<int64_t>(action.rate_cuts));
  looks_.EndStep(action.step, result.ok() && result->applied);
  if (!result.ok()) return Fail(action.generation, result.status());
  if (result->applied) {
    ++steps_;
    MutexLock lock(&mutex_);
    durations_.Applied(begin, SteadyNow());
  }
  checkpoint_time_ += replica_->state().TakeWaited();
  norm_ = result->norm.value_or(norm_);
  if (const absl::Status flipped = FlipForTest(action.step); !flipped.ok()) return Fail(action.generation, flipped);
  PublishStats();
  looks_.AtStep(action, (*communicator)->rank(), *result, replica_->state());
  options_.post(StepFinished{action.generation, action.step,
                             result->applied ? StepOutcome::kApplied : StepOutcome::kNonFinite, std::move(result->word),
                             std::move(result->record), std::move(result->message)});
}

absl::Status Engine::FlipForTest(uint64_t step) {
  static const char* const kAfter = std::getenv("LOCKSTEP_TEST_FLIP_AFTER_STEP");
  uint64_t after = 0;
  if (kAfter == nullptr || flipped_ || !absl::SimpleAtoi(kAfter, &after) || step != after) return absl::OkStatus();
  flipped_ = true;
  LS_LOG(warn, "LOCKSTEP_TEST_FLIP_AFTER_STEP: a bit of the state is flipped after step ", step);
  ReplicaState& state = replica_->state();
  LS_RETURN_IF_ERROR(state.Fetch());
  state.host().bytes()[2] ^= std::byte{0x10};  // in the mantissa of a weight, too high to be rounded away
  return state.Store();
}

void Engine::Do(const RunSlice& action) {
  const auto communicator = calls_.CommunicatorOf(action.generation);
  if (!communicator.ok()) return Fail(action.generation, communicator.status());
  const NowDoing evaluating("slice ", action.slice, " of the evaluation of step ", action.step, ", rank ",
                            (*communicator)->rank(), " of ", (*communicator)->size());
  if (action.slice == 0) {
    looks_.AtEvaluation(action.generation, action.step, (*communicator)->rank(), replica_->state());
  }
  looks_.BeginWork();
  absl::StatusOr<SliceOutcome> outcome = replica_->runner().RunSlice(**communicator, static_cast<int64_t>(action.step),
                                                                     static_cast<int64_t>(action.slice), action.slot);
  looks_.EndSlice(action.slice);
  if (!outcome.ok()) return Fail(action.generation, outcome.status());
  BreakDurations();
  options_.post(SliceFinished{action.generation, action.step, std::move(outcome->word), std::move(outcome->result)});
}

void Engine::WriteText(const WriteSample& action, uint64_t number) {
  const NowDoing writing("writing a sample of text");
  // In this order, because CancelSamples sets the number before it cancels.
  replica_->CancelSample(false);
  if (number <= cancelled_samples_) return;
  absl::StatusOr<std::string> text = replica_->WriteSample();
  if (text.ok()) return options_.post(TextWritten{action.generation, action.step, *std::move(text)});
  if (!absl::IsCancelled(text.status())) options_.post(InternalError{kExitBug, std::string(text.status().message())});
}

namespace {

// Changes a bit of every tensor of a snapshot after its digests were made, as memory that fails would.
void FlipSnapshotForTest(uint64_t step, const HostState& snapshot) {
  static const char* const kOf = std::getenv("LOCKSTEP_TEST_FLIP_SNAPSHOT_OF_STEP");
  uint64_t of = 0;
  if (kOf == nullptr || !absl::SimpleAtoi(kOf, &of) || step != of) return;
  LS_LOG(warn, "LOCKSTEP_TEST_FLIP_SNAPSHOT_OF_STEP: bits of the snapshot of step ", step, " are flipped");
  for (size_t i = 0; i < snapshot.layout().tensors.size(); ++i) {
    const absl::Span<const std::byte> bytes = snapshot.tensor(static_cast<int>(i));
    if (!bytes.empty()) const_cast<std::byte*>(bytes.data())[0] ^= std::byte{0x10};
  }
}

}  // namespace

void Engine::Do(const TakeSnapshot& action) {
  const NowDoing taking("the snapshot of step ", action.step);
  const absl::Time begin = SteadyNow();
  const std::function<void(const Snapshot&)> look = looks_.AtSave(action);
  const Profiler::Scope scope(looks_.profiler(), ProfileTrack::kState, "(snapshot)");
  auto snapshot = snapshots_.Take(replica_->state());
  if (!snapshot.ok()) {
    FailForGood(device::MarkedAs(
        snapshot.status(),
        absl::InternalError(absl::StrCat("snapshot of step ", action.step, ": ", snapshot.status().message()))));
    return;
  }
  checkpoint_time_ += SteadyNow() - begin;
  background_.Post([this, action, look, copy = *std::move(snapshot)] {
    const NowDoing naming("the digest of the snapshot of step ", action.step);
    if (const absl::Status copied = copy.Wait(); !copied.ok()) {
      FailForGood(device::MarkedAs(
          copied, absl::InternalError(absl::StrCat("snapshot of step ", action.step, ": ", copied.message()))));
      return;
    }
    look(copy);
    const auto digests = std::make_shared<const StateDigests>(copy.state->Digests());
    const SnapshotId id{action.lineage, action.step, digests->state};
    FlipSnapshotForTest(action.step, *copy.state);
    snapshots_.Name(id, {copy.state, digests});
    // The job may be over with this save.
    if (action.last) looks_.WaitForAll();
    options_.post(SnapshotDone{id});
  });
}

}  // namespace lockstep::worker
