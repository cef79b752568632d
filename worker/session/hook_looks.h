// Carries out the hooks of the job in this worker: inspections of the state and traces of steps. It decides what is
// due, copies the state, and inspects the copy on a thread of its own while training and saves continue.
//
// Only rank 0 inspects the state; every rank traces.
//
// Threading: owned by the engine's thread; WaitForAll and the function that AtSave returns are thread-safe.
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

// The hooks of a job for its workers, and the tracer of its steps.
struct HooksOfJob {
  std::string job;  // its name
  std::vector<StateHook> hooks;
  std::shared_ptr<StepTracer> tracer;  // null: no hook asks for traces
};

class HookLooks {
 public:
  // `own`: returns this worker in the current generation; thread-safe. `post`: thread-safe, does not block.
  HookLooks(SnapshotStore& snapshots, std::function<OwnMember()> own, std::function<void(Event)> post);

  // Sets the hooks; call when a replica is installed.
  void SetJob(HooksOfJob job) { job_ = std::move(job); }
  // Null: no tracing.
  Profiler* profiler() const { return job_.tracer == nullptr ? nullptr : job_.tracer->profiler(); }

  // Call when a step or slice begins and ends.
  void BeginWork();
  void EndStep(uint64_t step, bool applied);
  void EndSlice(uint64_t slice);

  // Call after a step, before its StepFinished is posted; `state` is the state after it. If the job ends with this step
  // (`on_nan: stop`), blocks until all inspections are posted.
  void AtStep(const RunStep& action, int rank, const StepResult& result, ReplicaState& state);
  // Call when the evaluation of `step` begins.
  void AtEvaluation(const Generation& generation, uint64_t step, int rank, ReplicaState& state);
  // Call when a save begins. Returns a function to call with the save's copy of the state, on any thread.
  std::function<void(const Snapshot&)> AtSave(const TakeSnapshot& action);

  // Blocks until the results of all inspections so far are posted.
  void WaitForAll();
  // Ends inspections, after those in progress.
  void Finish() { looks_.Finish(); }

 private:
  // `note`: for hooks of a NaN.
  void Look(const Generation& generation, int rank, const std::vector<HookInstant>& at, const std::string& note,
            ReplicaState& state);
  void LookAt(const Generation& generation, uint64_t step, std::vector<StateHook> due, const std::string& note,
              const Snapshot& copy);
  std::vector<StateHook> Due(const std::vector<HookInstant>& at) const;
  void BeginTrace(const std::vector<HookInstant>& at);
  // Sends the trace, if any, to the chief.
  void SendTrace(std::optional<StepTrace> trace);
  void Tell(const Generation& generation, uint64_t step, const std::string& hook, const lockstep::Observed& content);

  SnapshotStore& snapshots_;
  const std::function<OwnMember()> own_;
  const std::function<void(Event)> post_;
  HooksOfJob job_;
  std::atomic<bool> looking_{false};  // a copy of the state is being inspected
  SerialExecutor looks_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_HOOK_LOOKS_H_
