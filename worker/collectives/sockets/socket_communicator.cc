#include "worker/collectives/sockets/socket_communicator.h"

#include <sched.h>
#include <sys/epoll.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "worker/collectives/call.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {
namespace {

// A thread that waits for a call looks for what has come so long without sleeping: to wake it takes longer than peers
// that are as fast as this one let it wait.
constexpr absl::Duration kSpin = absl::Microseconds(100);
// Calls of no more bytes are begun by their caller. To sum larger ones would hold it up.
constexpr size_t kBegunByCaller = 1 << 20;

// The calls of one communicator, and whose turn it is to advance them.
class CallLoop final : public CallDriver {
 public:
  CallLoop(SocketGroup group, std::vector<std::unique_ptr<PeerStream>> streams, std::unique_ptr<HostMemory> memory)
      : calls_(std::move(group), std::move(streams), std::move(memory)) {}

  absl::Status Open() {
    LS_RETURN_IF_ERROR(calls_.Open());
    idle_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    epoll_event event = {.events = EPOLLIN, .data = {}};
    if (!idle_.is_open() || epoll_ctl(idle_.get(), EPOLL_CTL_ADD, calls_.fd(), &event) != 0) {
      return SystemError("cannot wait for peers");
    }
    return absl::OkStatus();
  }

  const SocketGroup& group() const { return calls_.group(); }
  uint64_t bytes_moved() const { return calls_.bytes_moved(); }

  absl::Status status() const {
    MutexLock lock(&mutex_);
    return status_;
  }

  void Abort(const absl::Status& cause) {
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return;
      status_ = AsAborted(cause);
    }
    broken_.store(true, std::memory_order_release);
    calls_.Interrupt();
  }

  void Enqueue(Call call) {
    const bool begins =
        call.bytes.size() + call.floats.size() * sizeof(float) + call.integers.size() * sizeof(int64_t) <=
        kBegunByCaller;
    bool wakes = false;
    {
      MutexLock lock(&mutex_);
      if (!status_.ok()) return call.completion->End(status_);
      posted_.push_back(std::move(call));
      // Whoever has the turn looks for posted calls before it gives the turn back.
      wakes = turn_taken_ || !begins;
      if (!wakes) turn_taken_ = true;
    }
    if (wakes) return calls_.Interrupt();
    const absl::Status status = SendPosted();
    GiveTurn();
    if (!status.ok()) Abort(status);
  }

  // The thread of the communicator: advances calls that nobody waits for, until the communicator breaks; then ends
  // them.
  void Run() {
    NameThread("collectives");
    while (!broken_.load(std::memory_order_acquire)) {
      TakeTurn();
      const absl::Status sent = SendPosted();
      const absl::StatusOr<bool> came = sent.ok() ? calls_.Receive(absl::ZeroDuration()) : sent;
      const absl::Time next = calls_.NextLook();
      GiveTurn();
      if (!came.ok()) {
        Abort(came.status());
      } else if (!*came) {
        Sleep(next);
      }
    }
    TakeTurn();
    std::deque<Call> posted;
    {
      MutexLock lock(&mutex_);
      posted.swap(posted_);
    }
    calls_.Close(status());
    for (const Call& call : posted) call.completion->End(status());
    GiveTurn();
  }

  void Drive(const Pending& call, absl::Time until) override {
    {
      MutexLock lock(&mutex_);
      if (driven_ || !status_.ok()) return;
      driven_ = true;
    }
    WakeThread(false);
    TakeTurn();
    const absl::Time begin = SteadyNow();
    for (absl::Time now = begin; now < until && !broken_.load(std::memory_order_acquire); now = SteadyNow()) {
      const absl::Status sent = SendPosted();
      if (sent.ok() && call.Done()) break;
      const bool spins = now - begin < kSpin;
      const absl::StatusOr<bool> came = sent.ok() ? calls_.Receive(spins ? absl::ZeroDuration() : until - now) : sent;
      if (!came.ok()) {
        Abort(came.status());
      } else if (spins && !*came) {
        sched_yield();  // others may want the processor
      }
    }
    GiveTurn();
    WakeThread(true);
    bool left = false;
    {
      MutexLock lock(&mutex_);
      driven_ = false;
      left = !status_.ok() || !posted_.empty();
    }
    // This thread may have taken in what was meant to wake the other one.
    if (left) calls_.Interrupt();
  }

 private:
  void TakeTurn() {
    MutexLock lock(&mutex_);
    while (turn_taken_) turn_free_.Wait(&mutex_);
    turn_taken_ = true;
  }
  void GiveTurn() {
    MutexLock lock(&mutex_);
    turn_taken_ = false;
    turn_free_.Signal();
  }

  // Begins and sends posted calls. REQUIRES: the turn.
  absl::Status SendPosted() {
    absl::Status begun;
    for (;;) {
      Call call;
      {
        MutexLock lock(&mutex_);
        if (posted_.empty() || !begun.ok()) break;  // Run ends those that are still there
        call = std::move(posted_.front());
        posted_.pop_front();
      }
      begun = calls_.Begin(std::move(call));
    }
    const absl::Status sent = calls_.Send();  // after a failure it still ends what was complete before
    return begun.ok() ? sent : begun;
  }

  // Whether the thread wakes when something comes.
  void WakeThread(bool wakes) {
    epoll_event event = {.events = wakes ? uint32_t{EPOLLIN} : 0u, .data = {}};
    (void)epoll_ctl(idle_.get(), EPOLL_CTL_MOD, calls_.fd(), &event);
  }

  // Until something comes that nobody else takes in, or `next`.
  void Sleep(absl::Time next) {
    const int64_t left = std::max<int64_t>(0, absl::ToInt64Milliseconds(next - SteadyNow()) + 1);
    epoll_event event;
    (void)epoll_wait(idle_.get(), &event, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30)));
  }

  PeerCalls calls_;  // of whoever has the turn
  Descriptor idle_;  // an epoll that watches the one of calls_, for the thread
  std::atomic<bool> broken_{false};
  mutable Mutex mutex_;
  CondVar turn_free_;
  bool turn_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool driven_ ABSL_GUARDED_BY(mutex_) = false;  // a thread that waits for a call advances all
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::deque<Call> posted_ ABSL_GUARDED_BY(mutex_);
};

class SocketCommunicator final : public CallCommunicator {
 public:
  explicit SocketCommunicator(std::shared_ptr<CallLoop> loop)
      : loop_(std::move(loop)), thread_([this] { loop_->Run(); }) {}

  ~SocketCommunicator() override {
    Abort(absl::AbortedError(absl::StrCat("rank ", rank(), " closed its communicator")));
    thread_.join();
  }

  Generation generation() const override { return loop_->group().generation; }
  int rank() const override { return loop_->group().rank; }
  int size() const override { return loop_->group().size; }
  uint64_t bytes_moved() const override { return loop_->bytes_moved(); }
  absl::Status status() const override { return loop_->status(); }
  void Abort(const absl::Status& cause) override { loop_->Abort(cause); }

 protected:
  void Enqueue(Call call) override {
    call.completion->SetDriver(loop_);
    loop_->Enqueue(std::move(call));
  }

 private:
  const std::shared_ptr<CallLoop> loop_;
  std::thread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> MakeSocketCommunicator(SocketGroup group,
                                                                     std::vector<std::unique_ptr<PeerStream>> streams,
                                                                     std::unique_ptr<HostMemory> memory) {
  auto loop = std::make_shared<CallLoop>(std::move(group), std::move(streams), std::move(memory));
  LS_RETURN_IF_ERROR(loop->Open());
  return std::make_unique<SocketCommunicator>(std::move(loop));
}

}  // namespace lockstep::worker
