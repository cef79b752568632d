// What hooks of the job want of this worker: a look at the state after some step, or a trace of some steps. Decides
// what is due, takes the copy, and looks at it on a thread of its own, so that training and saves go on.
//
// Rank 0 looks at the state; every rank traces.
//
// Threading: the engine's thread calls everything but WaitForAll, which is thread-safe, and the function that AtSave
// returns.
#ifndef LOCKSTEP_WORKER_SESSION_HOOK_LOOKS_H_
#define LOCKSTEP_WORKER_SESSION_HOOK_LOOKS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/job/job.h"
#include "common/liveness/serial_executor.h"
#include "common/protocol/ids.h"
#include "protos/observation.pb.h"
#include "worker/hooks/state_facts.h"
#include "worker/hooks/step_tracer.h"
#include "worker/profile/profiler.h"
#include "worker/session/actions.h"
#include "worker/session/events.h"
#include "worker/session/generation_calls.h"
#include "worker/snapshot/snapshot_store.h"
#include "worker/step/step_runner.h"

namespace lockstep::worker {

// What a job asks of its workers, and what watches them for it.
struct HooksOfJob {
  std::string job;  // its name
  std::vector<StateHook> hooks;
  std::shared_ptr<StepTracer> tracer;  // null: no hook traces
};

class HookLooks {
 public:
  // `own`: this worker in the generation of now, thread-safe. `post`: thread-safe, does not block.
  HookLooks(SnapshotStore& snapshots, std::function<OwnMember()> own, std::function<void(Event)> post);

  // Of the replica that is installed now.
  void SetJob(HooksOfJob job) { job_ = std::move(job); }
  // Null: nobody watches the replica.
  Profiler* profiler() const { return job_.tracer == nullptr ? nullptr : job_.tracer->profiler(); }

  // A step or a slice begins; it ended.
  void BeginWork();
  void EndStep(uint64_t step, bool applied);
  void EndSlice(uint64_t slice);

  // A step ended with `result`, and is not told yet. `state` is what it left. Waits for all looks where the job ends
  // with this step.
  void AtStep(const RunStep& action, int rank, const StepResult& result, ReplicaState& state);
  // The evaluation of `step` begins.
  void AtEvaluation(const Generation& generation, uint64_t step, int rank, ReplicaState& state);
  // A save begins. Returns what is to be done with the copy that it is made of, on any thread.
  std::function<void(const Snapshot&)> AtSave(const TakeSnapshot& action);

  // Returns when all that hooks wanted so far was posted.
  void WaitForAll();
  // Looks no more, after what is under way.
  void Finish() { looks_.Finish(); }

 private:
  // `note`: for hooks of a NaN.
  void Look(const Generation& generation, int rank, const std::vector<HookInstant>& at, const std::string& note,
            ReplicaState& state);
  void LookAt(const Generation& generation, uint64_t step, std::vector<StateHook> due, const std::string& note,
              const Snapshot& copy);
  std::vector<StateHook> Due(const std::vector<HookInstant>& at) const;
  void BeginTrace(const std::vector<HookInstant>& at);
  // Gives the trace, where there is one, to the chief.
  void SendTrace(std::optional<StepTrace> trace);
  void Tell(const Generation& generation, uint64_t step, const std::string& hook, const lockstep::Observed& content);

  SnapshotStore& snapshots_;
  const std::function<OwnMember()> own_;
  const std::function<void(Event)> post_;
  HooksOfJob job_;
  std::atomic<bool> looking_{false};  // at a copy of the state
  SerialExecutor looks_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HOOK_LOOKS_H_
