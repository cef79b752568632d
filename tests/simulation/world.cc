#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"

namespace lockstep::simulation {

World::World(uint64_t seed, std::ostream* trace)
    : start_(absl::FromUnixSeconds(1'000'000'000)), now_(start_), random_(seed), trace_(trace) {}

ProcessId World::StartProcess(HostId host) {
  processes_.push_back({});
  processes_.back().host = host;
  return static_cast<ProcessId>(processes_.size()) - 1;
}

void World::Kill(ProcessId process) {
  processes_[process].alive = false;
  processes_[process].waiting.clear();
}

void World::Pause(ProcessId process) { processes_[process].paused = true; }

void World::Resume(ProcessId process) {
  // What waited runs in one go, so that nothing that comes in at this very instant overtakes it.
  AfterOutside(absl::ZeroDuration(), [this, process] {
    processes_[process].paused = false;
    std::vector<std::function<void()>> waiting = std::move(processes_[process].waiting);
    processes_[process].waiting.clear();
    for (std::function<void()>& action : waiting) {
      const Process& state = processes_[process];
      if (!state.alive) return;
      if (state.paused) {
        processes_[process].waiting.push_back(std::move(action));
      } else {
        action();
      }
    }
  });
}

void World::After(ProcessId process, absl::Duration delay, std::function<void()> action) {
  Push(process, now_ + delay, std::move(action));
}

void World::At(ProcessId process, absl::Time when, std::function<void()> action) {
  Push(process, std::max(when, now_), std::move(action));
}

void World::AfterOutside(absl::Duration delay, std::function<void()> action) {
  Push(kOutside, now_ + delay, std::move(action));
}

void World::Push(ProcessId process, absl::Time when, std::function<void()> action) {
  uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<uint32_t>(actions_.size());
    actions_.push_back(std::move(action));
  } else {
    slot = free_.back();
    free_.pop_back();
    actions_[slot] = std::move(action);
  }
  queue_.push_back({when, process, next_order_++, slot});
  std::push_heap(queue_.begin(), queue_.end(), Later());
}

void World::Enter(ProcessId process, std::function<void()> action) {
  if (!queue_.empty() && queue_.front().when <= now_) return Push(process, now_, std::move(action));
  Run(process, std::move(action));
}

bool World::RunOne() {
  if (queue_.empty()) return false;
  std::pop_heap(queue_.begin(), queue_.end(), Later());
  const Scheduled next = queue_.back();
  queue_.pop_back();
  std::function<void()> action = std::exchange(actions_[next.slot], nullptr);
  free_.push_back(next.slot);
  now_ = next.when;
  Run(next.process, std::move(action));
  return true;
}

void World::Run(ProcessId id, std::function<void()> action) {
  if (id != kOutside) {
    Process& process = processes_[id];
    if (!process.alive) return;
    if (process.paused) {
      process.waiting.push_back(std::move(action));
      return;
    }
  }
  action();
}

void World::Trace(absl::string_view who, absl::string_view what) {
  *trace_ << absl::StrFormat("%10.4f  %-12s %s\n", absl::ToDoubleSeconds(elapsed()), who, what);
}

}  // namespace lockstep::simulation
