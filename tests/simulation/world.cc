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
  queue_.push({when, next_order_++, process, std::move(action)});
}

bool World::RunOne() {
  if (queue_.empty()) return false;
  // The queue hands out constant references; the entry is dropped right after the move.
  Scheduled next = std::move(const_cast<Scheduled&>(queue_.top()));
  queue_.pop();
  now_ = next.when;
  if (next.process != kOutside) {
    Process& process = processes_[next.process];
    if (!process.alive) return true;
    if (process.paused) {
      process.waiting.push_back(std::move(next.action));
      return true;
    }
  }
  next.action();
  return true;
}

void World::Trace(absl::string_view who, absl::string_view what) {
  *trace_ << absl::StrFormat("%10.4f  %-12s %s\n", absl::ToDoubleSeconds(elapsed()), who, what);
}

}  // namespace lockstep::simulation
