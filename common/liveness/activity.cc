#include "common/liveness/activity.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace liveness {
namespace {

Page* MakePage() {
  void* memory = MAP_FAILED;
  const int fd = memfd_create(kPageName, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  // The descriptor stays open: it is how others find the page.
  if (fd >= 0 && ftruncate(fd, sizeof(Page)) == 0 && fcntl(fd, F_ADD_SEALS, kPageSeals) == 0) {
    memory = mmap(nullptr, sizeof(Page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  Page* const page = memory == MAP_FAILED ? new Page : new (memory) Page;
  page->pid = getpid();
  page->magic.store(kPageMagic, std::memory_order_release);
  return page;
}

// The slot of a thread, for as long as it lives.
class SlotHolder {
 public:
  SlotHolder() {
    const auto tid = static_cast<int32_t>(syscall(SYS_gettid));
    for (ThreadSlot& slot : OwnPage().threads) {
      int32_t free = 0;
      if (!slot.tid.compare_exchange_strong(free, tid)) continue;
      slot.depth = 0;
      slot.name.Set("");
      slot_ = &slot;
      return;
    }
  }
  ~SlotHolder() {
    if (slot_ != nullptr) slot_->tid = 0;
  }
  ThreadSlot* slot() const { return slot_; }

 private:
  ThreadSlot* slot_ = nullptr;
};

std::string LastsText(absl::Duration lasts) {
  return absl::FormatDuration(absl::Trunc(lasts, lasts < absl::Seconds(10) ? absl::Milliseconds(1) : absl::Seconds(1)));
}

}  // namespace

Page& OwnPage() {
  static Page* const page = MakePage();
  return *page;
}

ThreadSlot* OwnSlot() {
  thread_local const SlotHolder holder;
  return holder.slot();
}

std::vector<ThreadActivity> ReadActivities(const Page& page, int64_t now_ns) {
  std::vector<ThreadActivity> activities;
  for (const ThreadSlot& slot : page.threads) {
    ThreadActivity& activity = activities.emplace_back();
    activity.tid = slot.tid.load(std::memory_order_acquire);
    if (activity.tid == 0) {
      activities.pop_back();
      continue;
    }
    activity.name = slot.name.Get();
    const size_t depth = std::min<size_t>(slot.depth.load(std::memory_order_acquire), kMostNotes);
    for (size_t i = 0; i < depth; ++i) {
      const int64_t since = slot.notes[i].since_ns.load(std::memory_order_relaxed);
      activity.doing.push_back({slot.notes[i].text.Get(), absl::Nanoseconds(std::max<int64_t>(0, now_ns - since))});
    }
  }
  return activities;
}

std::string DoingText(const std::vector<Doing>& doing) {
  std::string text;
  for (auto one = doing.rbegin(); one != doing.rend(); ++one) {
    absl::StrAppend(&text, text.empty() ? "" : ", in ", one->text, " for ", LastsText(one->lasts));
  }
  return text;
}

std::string LongActivityOf(absl::string_view thread, absl::Duration least) {
  for (const ThreadActivity& activity : ReadActivities(OwnPage(), MonotonicNs())) {
    if (activity.name != thread || activity.doing.empty() || activity.doing.back().lasts < least) continue;
    return DoingText(activity.doing);
  }
  return "";
}

}  // namespace liveness

void NameThread(absl::string_view name) {
  if (liveness::ThreadSlot* const slot = liveness::OwnSlot()) slot->name.Set(name);
  // The first thread's name is the process's in `ps`.
  if (gettid() != getpid()) pthread_setname_np(pthread_self(), std::string(name.substr(0, 15)).c_str());
}

void NowDoing::Begin(absl::string_view text) {
  slot_ = liveness::OwnSlot();
  if (slot_ == nullptr) return;
  const uint32_t depth = slot_->depth.load(std::memory_order_relaxed);
  if (depth < liveness::kMostNotes) {
    liveness::Note& note = slot_->notes[depth];
    note.since_ns.store(liveness::MonotonicNs(), std::memory_order_relaxed);
    note.text.Set(text);
  }
  slot_->depth.store(depth + 1, std::memory_order_release);
}

}  // namespace lockstep
