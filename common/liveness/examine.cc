#include "common/liveness/examine.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/clock/wall_time.h"
#include "common/liveness/dump_text.h"
#include "common/liveness/proc.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using liveness::Page;

constexpr int kLookEveryMs = 5;
constexpr size_t kMostDumpBytes = 64 << 20;
// The one thread that answers requests runs every second.
constexpr absl::Duration kAnswers = absl::Seconds(3);

absl::Duration SilenceOn(const Page& page) {
  return absl::Nanoseconds(liveness::MonotonicNs() - page.beat_ns.load(std::memory_order_relaxed));
}

// Whether the process wrote another dump within `limit`, and lived until then. `handle`: a descriptor of the process,
// which no later one of its number answers to.
bool AskForDump(int handle, const Page& page, absl::Duration limit) {
  const uint32_t before = page.dumps;
  const absl::Time until = SteadyNow() + limit;
  if (syscall(SYS_pidfd_send_signal, handle, SIGQUIT, nullptr, 0) != 0) return false;
  while (page.dumps == before) {
    pollfd ended{.fd = handle, .events = POLLIN, .revents = 0};
    if (poll(&ended, 1, kLookEveryMs) != 0 || SteadyNow() >= until) return page.dumps != before;
  }
  return true;
}

// The dump at a path that the process of user `owner` gave: a file of that user's own and nothing else. "" where it
// cannot be read.
std::string ReadDump(const std::string& path, uid_t owner) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return "";
  const absl::Cleanup close_fd = [fd] { close(fd); };
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_uid != owner) return "";
  std::string text(std::min(static_cast<size_t>(info.st_size), kMostDumpBytes), '\0');
  const ssize_t n = read(fd, text.data(), text.size());
  text.resize(n > 0 ? static_cast<size_t>(n) : 0);
  return text;
}

}  // namespace

absl::StatusOr<Examination> ExamineProcess(int pid, absl::Duration limit) {
  // Before anything is concluded: the number may become another process's.
  const auto handle = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  const absl::Cleanup close_handle = [handle] {
    if (handle >= 0) close(handle);
  };
  LS_ASSIGN_OR_RETURN(const liveness::ProcessState state, liveness::StateOfProcess(pid));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<liveness::PageView> view, liveness::PageView::Of(pid));
  const Page& page = view->page();
  Examination examination;
  examination.role = page.role.Get();
  // Without a role it is not ready for the signal yet.
  if (examination.role.empty()) return absl::NotFoundError(absl::StrCat("process ", pid, " is no chief or worker"));
  const bool stopped = state.state == 'T' || state.state == 't';
  const bool runs = !stopped && SilenceOn(page) < kAnswers;
  // Before it is asked: it may end meanwhile.
  liveness::DumpFacts facts;
  facts.role = examination.role;
  facts.pid = pid;
  facts.time = WallTimeText();
  facts.reason = absl::StrCat("from outside, for it ", stopped ? liveness::StateText(state.state) : "does not answer");
  facts.threads = liveness::FactsWithoutStacks(pid, page, "the process cannot be asked");
  examination.doing = liveness::SummaryOf(facts);
  if (runs && handle >= 0 && AskForDump(handle, page, limit)) {
    examination.path = page.last_dump.Get();
    struct stat process;
    const bool known = stat(absl::StrCat("/proc/", pid).c_str(), &process) == 0;
    examination.text = known ? ReadDump(examination.path, process.st_uid) : "";
  }
  if (examination.text.empty()) {
    examination.path.clear();
    examination.text = liveness::FormatDump(std::move(facts));
  }
  return examination;
}

absl::StatusOr<absl::Duration> SilenceOf(int pid) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<liveness::PageView> view, liveness::PageView::Of(pid));
  if (view->page().beat_ns == 0) return absl::NotFoundError(absl::StrCat("process ", pid, " does not show it"));
  return SilenceOn(view->page());
}

}  // namespace lockstep
