#include "chief/hooks/command_queue.h"

#include <signal.h>

#include <utility>

#include "common/clock/clock.h"
#include "common/liveness/activity.h"

namespace lockstep::chief {

CommandQueue::~CommandQueue() {
  Close();
  Cancel();
  MutexLock lock(&mutex_);
  for (const auto& [hook, lane] : lanes_) lane->thread.join();
}

bool CommandQueue::Start(HookCommand command) {
  MutexLock lock(&mutex_);
  if (closed_at_ != kOpen) return false;
  std::unique_ptr<Lane>& lane = lanes_[command.hook];
  if (lane == nullptr) {
    lane = std::make_unique<Lane>();
    lane->thread = std::thread([this, lane = lane.get()] { Work(*lane); });
  }
  ++pending_;
  if (lane->waiting.TryPush(std::move(command))) return true;
  --pending_;
  return false;
}

void CommandQueue::Close() {
  MutexLock lock(&mutex_);
  if (closed_at_ != kOpen) return;
  closed_at_ = absl::ToUnixNanos(SteadyNow());
  for (const auto& [hook, lane] : lanes_) lane->waiting.Close();
}

void CommandQueue::Cancel() { cancelled_ = true; }

bool CommandQueue::MustEnd(bool at_end) const {
  if (cancelled_) return true;
  const int64_t closed_at = closed_at_;
  return closed_at != kOpen && !at_end && SteadyNow() >= absl::FromUnixNanos(closed_at) + at_end_;
}

void CommandQueue::Work(Lane& lane) {
  NameThread("hook");
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  while (std::optional<HookCommand> command = lane.waiting.Pop()) {
    if (MustEnd(command->at_end)) {
      ++dropped_;
    } else {
      RunOne(*command);
    }
    --pending_;
  }
}

void CommandQueue::RunOne(const HookCommand& command) {
  const NowDoing running("the command of hook ", command.hook);
  ended_(command, RunCommand(command.command, [this, &command] { return MustEnd(command.at_end); }));
}

}  // namespace lockstep::chief
