#include "common/liveness/stacks.h"

#include <execinfo.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <new>
#include <utility>

#include "absl/debugging/symbolize.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/clock/clock.h"
#include "common/liveness/proc.h"
#include "common/sync/mutex.h"
#include "common/sync/stop_signals.h"

namespace lockstep::liveness {
namespace {

constexpr size_t kMostStacks = 1024;
constexpr int kMostFrames = 64;
// The handler itself, and the frame that the kernel put below it.
constexpr int kOwnFrames = 2;
constexpr useconds_t kLookEveryUs = 1000;

enum State : uint64_t { kIdle, kAsked, kWriting, kDone };

// A state together with the thread that it is about.
uint64_t About(int tid, State state) { return (static_cast<uint64_t>(tid) << 2) | state; }
State StateOf(uint64_t about) { return static_cast<State>(about & 3); }

struct StackSlot {
  std::atomic<uint64_t> about{kIdle};
  int count = 0;
  std::array<void*, kMostFrames> frames;
};

// Written before the handler is installed, never changed afterwards.
StackSlot* slots = nullptr;

void OnStackSignal(int) {
  const int error = errno;
  const auto tid = static_cast<int>(syscall(SYS_gettid));
  for (size_t i = 0; i < kMostStacks; ++i) {
    StackSlot& slot = slots[i];
    uint64_t asked = About(tid, kAsked);
    if (!slot.about.compare_exchange_strong(asked, About(tid, kWriting), std::memory_order_acquire)) continue;
    slot.count = backtrace(slot.frames.data(), kMostFrames);
    slot.about.store(About(tid, kDone), std::memory_order_release);
    break;
  }
  errno = error;
}

// Asks a thread; its slot, or null when it is not to be had. A slot is not taken over while a handler that was late
// still writes to it.
StackSlot* Ask(int tid, size_t& next) {
  for (; next < kMostStacks; ++next) {
    StackSlot& slot = slots[next];
    if (StateOf(slot.about.load(std::memory_order_acquire)) == kWriting) continue;
    ++next;
    slot.about.store(About(tid, kAsked), std::memory_order_release);
    if (syscall(SYS_tgkill, getpid(), tid, StackSignal()) == 0) return &slot;
    slot.about.store(kIdle, std::memory_order_relaxed);
    return nullptr;
  }
  return nullptr;
}

}  // namespace

void InstallStackSignal() {
  static const bool installed = [] {
    void* memory =
        mmap(nullptr, kMostStacks * sizeof(StackSlot), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    slots = static_cast<StackSlot*>(memory);
    for (size_t i = 0; i < kMostStacks; ++i) new (&slots[i]) StackSlot;
    void* frame = nullptr;
    backtrace(&frame, 1);  // loads what it needs
    struct sigaction action = {};
    action.sa_handler = OnStackSignal;
    action.sa_flags = SA_RESTART;
    sigfillset(&action.sa_mask);
    return sigaction(StackSignal(), &action, nullptr) == 0;
  }();
  (void)installed;
}

std::vector<ThreadStack> CollectStacks(absl::Duration limit) {
  static Mutex mutex;
  MutexLock lock(&mutex);
  std::vector<ThreadStack> stacks;
  std::vector<StackSlot*> asked;
  size_t next = 0;
  for (const int tid : ThreadsOf(getpid())) {
    stacks.push_back({.tid = tid, .answered = false, .frames = {}});
    const bool reaches = slots != nullptr && !BlocksSignal(getpid(), tid, StackSignal());
    asked.push_back(reaches ? Ask(tid, next) : nullptr);
  }
  const absl::Time until = SteadyNow() + limit;
  for (size_t i = 0; i < stacks.size(); ++i) {
    StackSlot* const slot = asked[i];
    if (slot == nullptr) continue;
    const uint64_t done = About(stacks[i].tid, kDone);
    while (slot->about.load(std::memory_order_acquire) != done && SteadyNow() < until) usleep(kLookEveryUs);
    uint64_t unanswered = About(stacks[i].tid, kAsked);
    if (slot->about.compare_exchange_strong(unanswered, kIdle) || unanswered != done) continue;
    stacks[i].answered = true;
    for (int frame = std::min(kOwnFrames, slot->count); frame < slot->count; ++frame) {
      stacks[i].frames.push_back(reinterpret_cast<uintptr_t>(slot->frames[static_cast<size_t>(frame)]));
    }
  }
  return stacks;
}

Symbols::Symbols(absl::Time until) : until_(until) {
  static const bool initialized = [] {
    absl::InitializeSymbolizer(nullptr);
    return true;
  }();
  (void)initialized;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0, offset = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %" SCNxPTR " %*s %*s %n", &begin, &end, &offset,
                    &name) < 3) {
      continue;
    }
    Mapping mapping{.begin = begin, .end = end, .base = begin - offset, .file = ""};
    if (name > 0 && static_cast<size_t>(name) < line.size()) mapping.file = line.substr(static_cast<size_t>(name));
    const bool continues = !mappings_.empty() && offset != 0 && mappings_.back().file == mapping.file;
    if (continues) mapping.base = mappings_.back().base;
    mappings_.push_back(std::move(mapping));
  }
}

std::string Symbols::NameOf(uintptr_t address, bool is_return) {
  std::string& text = known_[address];
  if (!text.empty()) return text;
  // A call may be the last instruction of its function.
  const uintptr_t looked_for = is_return ? address - 1 : address;
  char name[512];
  if (SteadyNow() < until_ && absl::Symbolize(reinterpret_cast<const void*>(looked_for), name, sizeof name)) {
    absl::StrAppend(&text, name, " ");
  }
  for (const Mapping& mapping : mappings_) {
    if (address < mapping.begin || address >= mapping.end) continue;
    if (mapping.file.empty()) return text = absl::StrCat(text, "(code made at run time)");
    const std::string file = mapping.file.substr(mapping.file.rfind('/') + 1);
    return text = absl::StrFormat("%s%s+0x%x", text, file, looked_for - mapping.base);
  }
  return text = absl::StrFormat("%s0x%x", text, address);
}

}  // namespace lockstep::liveness
