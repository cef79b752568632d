// The shell around Coordinator: turns messages, timers and completions of the storage into its events, and carries out
// its actions. No policy of its own.
//
// Threading: Run is called once, and its thread owns the core. Post, Close, SinceTurn, Ask, AskPresent, Drain and
// ChangeCheckpoint are thread-safe; the other functions are for the caller of Run, after it returned.
#ifndef LOCKSTEP_CHIEF_SERVER_CHIEF_LOOP_H_
#define LOCKSTEP_CHIEF_SERVER_CHIEF_LOOP_H_

#include <algorithm>
#include <atomic>
#include <fstream>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chief/core/coordinator.h"
#include "chief/core/policy.h"
#include "chief/hooks/hook_desk.h"
#include "chief/hooks/trace_keeper.h"
#include "chief/logs/log_keeper.h"
#include "chief/server/burst.h"
#include "chief/server/job_records.h"
#include "chief/server/job_setup.h"
#include "chief/server/job_store.h"
#include "chief/server/last_events.h"
#include "chief/server/progress.h"
#include "chief/server/record_writer.h"
#include "chief/server/session_registry.h"
#include "chief/server/storage_watch.h"
#include "chief/server/tick_gate.h"
#include "chief/watch/present_job.h"
#include "common/clock/clock.h"
#include "common/liveness/serial_executor.h"
#include "common/sync/queue.h"
#include "protos/session.pb.h"

namespace lockstep::chief {

class ChiefLoop {
 public:
  // The name, in dumps, of the thread that calls Run; its notes name the event and the action that it works on.
  static constexpr char kThreadName[] = "chief loop";
  static constexpr char kStorageThread[] = "storage";

  struct Options {
    const JobSetup* setup = nullptr;
    CoordinatorConfig config;
    JobStore* store = nullptr;
    SessionRegistry* sessions = nullptr;
    std::string record_path;   // empty: nothing is recorded
    bool live = false;         // progress is shown as one line of a terminal that is rewritten
    LogKeeper* log = nullptr;  // keeps this process's log in the job's directory; null: it is not kept
  };

  explicit ChiefLoop(Options options);

  // Runs until the core returns Exit, and returns its code. Blocks. The storage thread calls `keep_addresses` every two
  // seconds: it restores the published address of this chief if somebody removed it.
  int Run(std::function<absl::Status()> keep_addresses);
  // Whether the workers were handed over to the next chief. Called after Run.
  bool handed_over() const { return exit_.has_value() && exit_->handed_over; }

  // Queues an event for the core. With `wait` it blocks while the queue is full. Returns false if the event was
  // dropped.
  bool Post(Event event, bool wait);
  // Writes the log lines since Run returned to the job's directory. Blocks on the storage.
  void KeepLastLines();
  // Records that the job ended here, so that the next chief continues behind this step. Called once the end is recorded
  // in the log. Blocks on the storage.
  void KeepEnd();
  // Accepts no more inputs; blocked calls of Post return false.
  void Close() { inputs_.Close(); }
  // How long ago the newest turn of the loop began; negative once Run has left the loop. Does not block.
  absl::Duration SinceTurn() const { return clock_.Now() - absl::FromUnixNanos(turned_); }
  // The job's status, as of the loop's next turn. Blocks. Unavailable: the queue is full or closed. DeadlineExceeded:
  // the loop is busy for too long.
  absl::StatusOr<proto::StatusReply> Ask();
  // As Ask, with the workers' statistics, for the page and the metrics.
  absl::StatusOr<PresentJob> AskPresent();
  // Drains workers and hosts, or lifts drains, durably. Returns lines for people. Blocks, for seconds at most.
  // InvalidArgument: refused, nothing changed. Unavailable: the queue is full or closed. DeadlineExceeded: no answer in
  // time.
  absl::StatusOr<std::vector<std::string>> Drain(DrainRequested request);
  // Pins, unpins or removes a checkpoint (ManifestStore::Change), after all work that is queued for the storage.
  // Blocks, for half a minute at most. Unavailable: the queue is full or closed. DeadlineExceeded: the storage is still
  // busy with it.
  absl::StatusOr<std::string> ChangeCheckpoint(CheckpointChange change, int64_t step);

 private:
  static constexpr absl::Duration kNewsWithin = absl::Milliseconds(200);
  using LoopTask = std::function<void()>;
  using Input = std::variant<Event, LoopTask>;
  using DrainAnswer = std::promise<absl::StatusOr<std::vector<std::string>>>;

  void Post(LoopTask question);
  // Runs `answer` on the loop's thread and returns its result. Codes as Ask.
  template <typename Answer>
  absl::StatusOr<Answer> AskFor(std::function<Answer()> answer);
  // Waits for an input or a deadline and handles it.
  void TakeTurn();
  void Step(const Event& event);
  JobRecords::Instant Now() const;
  // Updates which hooks fired in the records. Does nothing once the job ends: Run and KeepEnd then record them.
  void ShowMarks();
  // The core's state after a decision, for the timeline.
  TimelineRecorder::Present Present();
  // Updates the generation and step that lines of the log carry.
  void TellPosition();
  void Perform(const Send& action);
  void Perform(const SendToAll& action);
  void Perform(const CloseSession& action);
  void Perform(const StorePlan& action);
  void Perform(const OpenSave& action);
  void Perform(const AbandonSave& action);
  void Perform(const StoreManifest& action);
  void Perform(const PublishCommit& action);
  void Perform(const AmendManifest& action);
  void Perform(const RecordRepair& action);
  void Perform(const WentBack& action);
  void Perform(const StepsAgreed& action);
  void Perform(const EvaluationDone& action);
  void Perform(const RecordSample& action);
  void Perform(const RecordObservation& action);
  void Perform(const WorkerChanged& action);
  void Perform(const WorkerCounters& action);
  void Perform(const Announce& action);
  void Perform(const DrainDecided& action);
  void Perform(const Exit& action);

  std::unique_ptr<HookDesk> MakeHooks();
  // Shows the hooks an event, before the core has it.
  void ShowHooks(const Event& event);
  // Shows the hooks newly agreed steps.
  void ShowHooks(absl::Time now, const StepsAgreed& action);
  // Carries out what hooks asked for: a stop of the job, or storing soon what fired.
  void ServeHooks(absl::Time now);
  HookFacts FactsForHooks();
  // Stores a trace, if this piece completes it.
  void KeepTrace(const RecordObservation& told, const TracePiece& piece);
  // The hooks that fired, and the checkpoint with which the job ended by itself.
  HookMarks MarksAtEnd();
  // Whether a request or a hook stopped the job before it was done.
  bool IsStopped();
  // Called when the job ended: waits for commands of hooks that still run.
  void FinishHooks();

  // Handles the result of a publication or of an amendment. Runs on the storage thread.
  void OnPublished(const SnapshotId& snapshot, const absl::StatusOr<PublishedCheckpoint>& published, bool amended);
  // Handles a recorded repair. Runs on the storage thread.
  void OnRepaired(const RepairRecorded& repair, const std::string& path);
  // The step of the best checkpoint, which retention keeps besides the newest; 0: none.
  int64_t BestOf(const EvaluationLedger& ledger) const;
  void PostStorageFailure(const SnapshotId& snapshot, const absl::Status& status);
  void WriteStats(absl::Time now);
  // Has statistics written within kNewsWithin, as a chief that is killed soon should have stored this news.
  void WriteSoon(absl::Time now) { next_stats_ = std::min(next_stats_, now + kNewsWithin); }
  void LookAtStorage(absl::Time now);
  // The members of the generation that took a save, for its manifest.
  std::vector<ManifestMember> MembersOf(const StoreManifest& action);
  // Waits for the storage thread and writes the last records.
  void FinishStorage();
  // The best checkpoint of a job that is done. A failure of the storage turns the job's exit code into 74.
  FoundBest FindResult();
  // Lifts all drains of a job that is done.
  void EndDrains();
  proto::StatusReply Describe();
  void DescribeWorkers(absl::Time now, const CoordinatorView& view, proto::StatusReply& reply) const;
  void DescribeRepairs(proto::StatusReply& reply) const;

  const Options options_;
  SteadyClock clock_;
  std::atomic<int64_t> turned_;  // when the newest turn began, in nanoseconds of `clock_`
  Coordinator core_;
  BoundedQueue<Input> inputs_;
  TickGate ticks_;
  Burst burst_;
  Progress progress_;
  std::string last_checkpoint_;
  JobRecords records_;
  RecordWriter writer_;  // used by the storage thread, and by Run after that ended
  std::unique_ptr<HookDesk> hooks_;
  TraceKeeper traces_;
  bool stats_failed_ = false;  // used by the storage thread
  std::function<absl::Status()> keep_addresses_;
  absl::Time next_stats_ = absl::InfinitePast();
  StorageWatch storage_watch_;
  std::atomic<bool> stats_are_written_{false};
  uint64_t agreed_step_ = 0;
  std::pair<Generation, uint64_t> log_position_;  // the position that the log has
  std::map<SnapshotId, CommitInfo> commits_;
  LastEvents last_events_;
  std::ofstream record_;
  std::optional<Exit> exit_;
  bool stop_asked_ = false;
  std::atomic<bool> stop_posted_{false};
  uint64_t drain_requests_ = 0;
  std::map<uint64_t, std::shared_ptr<DrainAnswer>> drain_answers_;  // requests that the core has not decided yet
  SerialExecutor storage_;                                          // the last member, so that it is destroyed first
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_CHIEF_LOOP_H_
