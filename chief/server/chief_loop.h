// The shell around Coordinator: turns messages, timers and completions of the storage into its events, and carries out
// its actions. No policy of its own.
//
// Threading: Run is called once and owns the core; Post and Ask are thread-safe.
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
  // Of the thread that calls Run, in dumps: its notes name the event and the action that it works on.
  static constexpr char kThreadName[] = "chief loop";
  static constexpr char kStorageThread[] = "storage";

  struct Options {
    const JobSetup* setup = nullptr;
    CoordinatorConfig config;
    JobStore* store = nullptr;
    SessionRegistry* sessions = nullptr;
    std::string record_path;   // empty: nothing is recorded
    bool live = false;         // progress is a line of a terminal that is rewritten
    LogKeeper* log = nullptr;  // what this process says, for the job's directory; null: nothing is kept
  };

  explicit ChiefLoop(Options options);

  // Runs until the core says Exit; returns its code. Blocks. The storage's thread calls `keep_addresses` every two
  // seconds: it writes again where this chief listens, when somebody removed that.
  int Run(std::function<absl::Status()> keep_addresses);
  // Whether the workers are left to the next chief. Called after Run.
  bool handed_over() const { return exit_.has_value() && exit_->handed_over; }

  // Gives the core an event. With `wait` it blocks while the queue is full. False: it was dropped.
  bool Post(Event event, bool wait);
  // Writes what was said since Run returned into the job's directory. Blocks on the storage.
  void KeepLastLines();
  // Writes that the job ended here, so that the next chief goes on behind this step. To be called once the end is
  // recorded. Blocks on the storage.
  void KeepEnd();
  // Takes nothing more; whoever waits to give an event stops waiting.
  void Close() { inputs_.Close(); }
  // How long ago a turn of the loop began; negative when it has ended. Does not block.
  absl::Duration SinceTurn() const { return clock_.Now() - absl::FromUnixNanos(turned_); }
  // What the job is doing, as of the loop's next turn. DeadlineExceeded when the loop is busy for too long.
  absl::StatusOr<proto::StatusReply> Ask();
  // The same with the workers' statistics, for the page and the metrics.
  absl::StatusOr<PresentJob> AskPresent();
  // Drains workers and hosts, or lifts drains, durably: lines for people. InvalidArgument: refused, nothing is changed.
  // Blocks, for seconds at most; DeadlineExceeded when that is not enough.
  absl::StatusOr<std::vector<std::string>> Drain(DrainRequested request);
  // Pins, unpins or removes a checkpoint (ManifestStore::Change), behind what the storage has to do already. Blocks,
  // for half a minute at most; DeadlineExceeded: the storage is still at it.
  absl::StatusOr<std::string> ChangeCheckpoint(CheckpointChange change, int64_t step);

 private:
  static constexpr absl::Duration kNewsWithin = absl::Milliseconds(200);
  using Question = std::function<void()>;
  using Input = std::variant<Event, Question>;
  using DrainAnswer = std::promise<absl::StatusOr<std::vector<std::string>>>;

  void Post(Question question);
  // What `answer` gives on the loop's thread. Codes as Ask.
  template <typename Answer>
  absl::StatusOr<Answer> AskFor(std::function<Answer()> answer);
  // Waits for an input or a deadline, and handles it.
  void TakeTurn();
  void Step(const Event& event);
  JobRecords::Instant Now() const;
  // Tells the records which hooks fired. Nothing once the job ends: whoever ends it does so, at two instants (Run,
  // KeepEnd).
  void ShowMarks();
  // How the core is after a decision, for the timeline.
  TimelineRecorder::Present Present();
  // Lines of the log say from now on where the job stands.
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
  void Perform(const SampleTold& action);
  void Perform(const ObservationTold& action);
  void Perform(const WorkerChanged& action);
  void Perform(const WorkerCounters& action);
  void Perform(const Announce& action);
  void Perform(const DrainDecided& action);
  void Perform(const Exit& action);

  std::unique_ptr<HookDesk> MakeHooks();
  // What hooks see of an event before the core has it.
  void ShowHooks(const Event& event);
  // What they see of agreed steps.
  void ShowHooks(absl::Time now, const StepsAgreed& action);
  // What they asked for: the job stops, or what fired is to be stored soon.
  void ServeHooks(absl::Time now);
  HookFacts FactsForHooks();
  // Keeps a trace that is whole with this piece.
  void KeepTrace(const ObservationTold& told, const TracePiece& piece);
  // What fired, and with which checkpoint the job ended by itself.
  HookMarks MarksAtEnd();
  // Whether the job was asked to stop, or a hook stopped it, before it was done.
  bool IsStopped();
  // The job ended. Waits for commands that still run.
  void FinishHooks();

  // On the storage's thread: what came of a publication, or of a manifest's amendment.
  void OnPublished(const SnapshotId& snapshot, const absl::StatusOr<PublishedCheckpoint>& published, bool amended);
  // The job went back.
  void OnRepaired(const RepairRecorded& repair, const std::string& path);
  // The step that retention keeps besides the newest; 0: none.
  int64_t BestOf(const EvaluationLedger& ledger) const;
  void PostStorageFailure(const SnapshotId& snapshot, const absl::Status& status);
  void WriteStats(absl::Time now);
  // What a chief that is killed in a moment should have told.
  void WriteSoon(absl::Time now) { next_stats_ = std::min(next_stats_, now + kNewsWithin); }
  void LookAtStorage(absl::Time now);
  // For the manifest of a save.
  std::vector<ManifestMember> MembersOf(const StoreManifest& action);
  // Waits for the storage's thread and writes the last of the records.
  void FinishStorage();
  // The best checkpoint of a job that is done. Makes it one that failed (74) when the storage does.
  FoundBest FindResult();
  // A job that is done keeps nobody away any more.
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
  RecordWriter writer_;  // of the storage's thread, and of Run after its end
  std::unique_ptr<HookDesk> hooks_;
  TraceKeeper traces_;
  bool stats_failed_ = false;  // of the storage's thread
  std::function<absl::Status()> keep_addresses_;
  absl::Time next_stats_ = absl::InfinitePast();
  StorageWatch storage_watch_;
  std::atomic<bool> stats_are_written_{false};
  uint64_t agreed_step_ = 0;
  std::pair<Generation, uint64_t> log_position_;  // as the log was told
  std::map<SnapshotId, CommitInfo> commits_;
  LastEvents last_events_;
  std::ofstream record_;
  std::optional<Exit> exit_;
  bool stop_asked_ = false;
  std::atomic<bool> stop_posted_{false};
  uint64_t drain_requests_ = 0;
  std::map<uint64_t, std::shared_ptr<DrainAnswer>> drain_answers_;  // requests that the core has not decided yet
  SerialExecutor storage_;                                          // last: it ends first
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_CHIEF_LOOP_H_
