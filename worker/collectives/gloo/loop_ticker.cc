#include "worker/collectives/gloo/loop_ticker.h"

#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <exception>

namespace lockstep::worker {
namespace {

// Long against a turn's own work, short against everything that waits for one.
constexpr long kTurnEveryNs = 100'000;

void SetTimer(int timer, long every_ns) {
  itimerspec spec = {};
  spec.it_value.tv_nsec = spec.it_interval.tv_nsec = every_ns;
  timerfd_settime(timer, 0, &spec, nullptr);
}

}  // namespace

LoopTicker::LoopTicker(const std::shared_ptr<gloo::transport::Device>& device) {
  const auto tcp = std::dynamic_pointer_cast<gloo::transport::tcp::Device>(device);
  if (tcp == nullptr) return;
  timer_ = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (timer_ < 0) return;
  try {
    tcp->registerDescriptor(timer_, EPOLLIN, this);
    device_ = tcp;
  } catch (const std::exception&) {
    close(timer_);
    timer_ = -1;
  }
}

LoopTicker::~LoopTicker() {
  if (const auto device = device_.lock()) {
    try {
      device->unregisterDescriptor(timer_, this);
    } catch (const std::exception&) {
      // The loop does not know the timer any more: that is what was wanted.
    }
  }
  if (timer_ >= 0) close(timer_);
}

void LoopTicker::Start() {
  MutexLock lock(&mutex_);
  if (started_++ == 0 && timer_ >= 0) SetTimer(timer_, kTurnEveryNs);
}

void LoopTicker::Stop() {
  MutexLock lock(&mutex_);
  if (--started_ == 0 && timer_ >= 0) SetTimer(timer_, 0);
}

void LoopTicker::handleEvents(int) {
  uint64_t expired = 0;
  if (read(timer_, &expired, sizeof(expired)) == sizeof(expired)) ++turns_;
}

}  // namespace lockstep::worker
