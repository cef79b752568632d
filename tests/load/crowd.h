// Many generated workers in one process, each with connections of its own to one chief. One thread drives all cores;
// what blocks (connecting, fetching, uploading) runs on a few others.
//
// Threading: thread-safe for its owner; workers call it on its driving thread.
#ifndef LOCKSTEP_TESTS_LOAD_CROWD_H_
#define LOCKSTEP_TESTS_LOAD_CROWD_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <queue>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/sync/mutex.h"
#include "common/sync/queue.h"
#include "tests/load/load_worker.h"
#include "tests/load/meeting.h"
#include "tests/load/session_link.h"
#include "tests/load/shared_state.h"
#include "worker/session/chief_client.h"
#include "worker/upload/share_upload.h"

namespace lockstep::load {

// A summary of the workers.
struct CrowdView {
  size_t alive = 0;
  size_t members = 0;               // workers that step in `newest`
  size_t stepped = 0;               // members that applied a step in it
  Generation newest;                // the newest generation in which a worker steps
  uint64_t least_step = 0;          // the lowest step of its members
  std::map<Term, size_t> welcomed;  // live workers by the term of the chief that last welcomed them
  std::map<int32_t, size_t> exits;
};

class Crowd {
 public:
  struct Options {
    std::string directory;  // of the job
    absl::Duration step_time = absl::Seconds(1);
    // Size of the secret and address that each rank stores for the others while the communicator forms; 0: none.
    size_t address_bytes = 85;
    bool verbose = false;  // workers log to stderr
  };

  explicit Crowd(Options options);
  ~Crowd();

  // Starts `workers` more workers at once.
  void Start(size_t workers);
  // Kills a worker that steps, and returns its number.
  size_t KillOne();
  CrowdView View();
  // Blocks until `condition` holds for the view; returns false after `limit`.
  bool WaitUntil(const std::function<bool(const CrowdView&)>& condition, absl::Duration limit);
  Traffics& traffics() { return traffics_; }

  // For workers.
  const Options& options() const { return options_; }
  absl::Time now() const { return now_; }
  worker::ChiefClient& client() { return client_; }
  SharedState& state() { return state_; }
  Meetings& meetings() { return meetings_; }
  // Posts an event to a worker, now or later.
  void Post(size_t worker, worker::Event event, uint64_t stream = 0);
  void PostAfter(absl::Duration delay, size_t worker, worker::Event event);
  void PostBeatEnd(size_t worker, bool answered, Term term);
  // Runs `task` on the driving thread, later.
  void Run(std::function<void()> task) { inputs_.Push(std::move(task)); }
  // Called when gRPC begins and ends to work for a worker. What it used is destroyed on the driving thread (Drop).
  void LinkBegins();
  void LinkEnded();
  void Drop(std::shared_ptr<void> used) {
    Run([this, used = std::move(used)] { LinkEnded(); });
  }
  // Runs blocking work on another thread.
  void Elsewhere(std::function<void()> work) { work_.Push(std::move(work)); }
  void Upload(size_t worker, worker::ShareJob job);
  // A generation lost `dead`, or a member gave up (none): tells the members that wait for the others.
  void BreakMeeting(const Generation& generation, const Incarnation& dead);

 private:
  using Task = std::function<void()>;
  struct Alarm {
    absl::Time when;
    uint64_t order = 0;
    Task task;
    bool operator>(const Alarm& other) const { return std::tie(when, order) > std::tie(other.when, other.order); }
  };

  void Drive();
  void Work();
  void At(absl::Time when, Task task) { alarms_.push({when, ++alarm_order_, std::move(task)}); }
  void AlarmTick(size_t worker);
  void AlarmBeat(size_t worker, absl::Duration after);
  void Add();
  CrowdView Look() const;
  // Runs `task` on the driving thread and waits for it.
  void Ask(Task task);

  const Options options_;
  SteadyClock clock_;
  absl::Time now_;
  worker::ChiefClient client_;
  SharedState state_;
  Traffics traffics_;
  Meetings meetings_;
  std::vector<std::unique_ptr<LoadWorker>> workers_;
  std::vector<absl::Time> ticks_;  // by worker: the alarm that is in force
  std::priority_queue<Alarm, std::vector<Alarm>, std::greater<>> alarms_;
  uint64_t alarm_order_ = 0;
  Mutex mutex_;
  CondVar links_changed_;
  size_t links_ GUARDED_BY(mutex_) = 0;
  std::map<std::tuple<SnapshotId, uint32_t, uint32_t>, size_t> senders_ GUARDED_BY(mutex_);
  BoundedQueue<Task> inputs_;
  BoundedQueue<Task> work_;
  std::vector<std::unique_ptr<worker::ShareUploader>> uploaders_;
  std::vector<std::thread> helpers_;
  std::atomic<bool> ended_{false};
  std::thread driver_;
};

}  // namespace lockstep::load

#endif  // LOCKSTEP_TESTS_LOAD_CROWD_H_
