// The shell around SessionCore: turns messages, timers, signals and completions into events, and carries out the
// actions. It has no policy of its own.
//
// Threading: Run is called once. The core, and all that has no lock, belongs to the turn that is under way
// (turn_queue.h): of the thread of Run, to which other threads post events, or of the engine's, which has ended a step
// and goes on with the next one without waking anybody.
#ifndef LOCKSTEP_WORKER_SESSION_SESSION_LOOP_H_
#define LOCKSTEP_WORKER_SESSION_SESSION_LOOP_H_

#include <atomic>
#include <cstdint>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"
#include "worker/collectives/sockets/peer_tester.h"
#include "worker/metrics/worker_page.h"
#include "worker/session/chief_client.h"
#include "worker/session/chief_stream.h"
#include "worker/session/engine.h"
#include "worker/session/heartbeat.h"
#include "worker/session/session_core.h"
#include "worker/session/turn_queue.h"
#include "worker/upload/share_upload.h"

namespace lockstep::worker {

class SessionLoop {
 public:
  struct Options {
    SessionConfig core;
    ChiefLocation chief;
    std::string peer_host;
    PeerListener* peer_listener = nullptr;  // at peer_host; outlives the loop
    std::string record_path;                // file for events and actions; empty: none
    absl::Duration connect_timeout;
    device::WorkerDevice device;  // `--device` and `--local-rank`
    std::vector<DataRoot> data_roots;
  };

  explicit SessionLoop(Options options);
  ~SessionLoop();

  // Runs until the core says Exit; returns its code. Blocks.
  int Run();

  // The time since the latest turn of the loop ended. Thread-safe; does not block.
  absl::Duration SinceTurn() const { return clock_.Now() - absl::FromUnixNanos(turned_); }
  // A status line for people; "" before the chief has accepted this worker. Thread-safe.
  std::string Status() const;
  // The status for the metrics page. Thread-safe; does not block.
  PresentWorker Present() const;

  // Call on SIGTERM or on a notice that this process ends in `grace`; zero: the job's grace period. Thread-safe.
  void Terminate(absl::Duration grace = absl::ZeroDuration()) { Post(TermSignal{grace}); }

 private:
  // An event, and the number of the stream that it came from; 0: none.
  struct Input {
    Event event;
    uint64_t stream = 0;
  };

  void Post(Event event, uint64_t stream = 0);
  // Handles the end of a step on this thread, the engine's, if it can. Else posts the event.
  void PostOfEngine(Event event);
  // The parts of a turn.
  void Handle(const Input& input);
  void TickIfDue();
  void EndTurn(bool interrupt);
  void Step(const Event& event);
  void GiveUpUnreachable();
  // Exits with 0 if by the job's directory the job is done, under a chief of term `least` or newer.
  void LeaveWhenDone(Term least);

  void Perform(const Connect& action);
  void Perform(const Disconnect& action);
  void Perform(const Send& action);
  void Perform(const SetPhase& action);
  void Perform(const TestConnections& action);
  void Perform(const UploadShare& action);
  void Perform(const DropSnapshot& action);
  void Perform(const Announce& action);
  void Perform(const Exit& action);
  template <typename Action>
  void Perform(const Action& action) {
    engine_.Perform(action);
  }

  // All statistics of the worker. Thread-safe.
  std::vector<NamedValue> Statistics() const;

  // The contents of Status.
  struct Shown {
    std::string name;
    SessionCore::Phase phase = SessionCore::Phase::kIdle;
    Generation generation;
    uint64_t step = 0;
  };

  void SetFence(const WorkerFence& fence);
  WorkerFence fence() const;
  void SendStoreKey(const Generation& generation, const std::string& key, const std::string& value);

  // If the core ends the process because a thread hangs, describes the threads' work in hang_.
  void DescribeHang(const std::vector<Action>& actions);

  const Options options_;
  SteadyClock clock_;
  SessionCore core_;
  TurnQueue<Input> inputs_;
  std::ofstream record_;
  const absl::Time started_;
  absl::Time next_tick_;
  absl::Time due_;  // when the next turn begins at the latest
  bool ever_connected_ = false;
  std::optional<int> exit_code_;
  uint64_t stream_number_ = 0;
  std::atomic<int64_t> turned_;  // when the latest turn ended, in nanoseconds of `clock_`
  std::string hang_;             // where this process hangs; "" if it does not

  mutable Mutex mutex_;
  WorkerFence fence_ GUARDED_BY(mutex_);
  Shown shown_ GUARDED_BY(mutex_);
  std::shared_ptr<ChiefStream> stream_ GUARDED_BY(mutex_);

  ChiefClient client_;
  Engine engine_;
  ShareUploader uploader_;
  PeerTester tester_;
  HeartbeatThread heartbeat_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_SESSION_SESSION_LOOP_H_
