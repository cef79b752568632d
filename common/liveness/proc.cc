#include "common/liveness/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::liveness {
namespace {

// Those that a thread of this program may hang in.
constexpr std::pair<long, const char*> kSystemCalls[] = {
    {SYS_read, "read"},
    {SYS_write, "write"},
    {SYS_close, "close"},
    {SYS_pread64, "pread"},
    {SYS_pwrite64, "pwrite"},
    {SYS_writev, "writev"},
    {SYS_openat, "openat"},
    {SYS_fstat, "fstat"},
    {SYS_newfstatat, "stat"},
    {SYS_statx, "statx"},
    {SYS_statfs, "statfs"},
    {SYS_fsync, "fsync"},
    {SYS_fdatasync, "fdatasync"},
    {SYS_sync_file_range, "sync_file_range"},
    {SYS_ftruncate, "ftruncate"},
    {SYS_renameat2, "rename"},
    {SYS_mkdirat, "mkdir"},
    {SYS_unlinkat, "unlink"},
    {SYS_flock, "flock"},
    {SYS_getdents64, "getdents"},
    {SYS_futex, "futex"},
    {SYS_clock_nanosleep, "clock_nanosleep"},
    {SYS_nanosleep, "nanosleep"},
    {SYS_rt_sigtimedwait, "sigtimedwait"},
    {SYS_ppoll, "ppoll"},
    {SYS_epoll_pwait, "epoll_pwait"},
    {SYS_recvfrom, "recv"},
    {SYS_recvmsg, "recvmsg"},
    {SYS_sendto, "send"},
    {SYS_sendmsg, "sendmsg"},
    {SYS_connect, "connect"},
    {SYS_accept4, "accept"},
    {SYS_ioctl, "ioctl"},
    {SYS_mmap, "mmap"},
    {SYS_munmap, "munmap"},
    {SYS_madvise, "madvise"},
    {SYS_wait4, "wait"},
#ifdef __x86_64__
    {SYS_open, "open"},
    {SYS_stat, "stat"},
    {SYS_lstat, "lstat"},
    {SYS_rename, "rename"},
    {SYS_mkdir, "mkdir"},
    {SYS_rmdir, "rmdir"},
    {SYS_unlink, "unlink"},
    {SYS_poll, "poll"},
    {SYS_epoll_wait, "epoll_wait"},
#endif
};

// The start of a small file of /proc; "" where it cannot be read.
std::string ReadSmall(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return "";
  char buffer[4096];
  const ssize_t n = read(fd, buffer, sizeof buffer);
  close(fd);
  return n > 0 ? std::string(buffer, static_cast<size_t>(n)) : "";
}

std::string ThreadFile(int pid, int tid, absl::string_view name) {
  return ReadSmall(absl::StrCat("/proc/", pid, "/task/", tid, "/", name));
}

// The names in a folder that are numbers, in order.
std::vector<int> NumbersIn(const std::string& folder) {
  std::vector<int> numbers;
  DIR* const directory = opendir(folder.c_str());
  if (directory == nullptr) return numbers;
  while (const dirent* entry = readdir(directory)) {
    int number = 0;
    if (absl::SimpleAtoi(entry->d_name, &number)) numbers.push_back(number);
  }
  closedir(directory);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace

void ParseStat(absl::string_view text, ThreadState& state) {
  // The name stands in parentheses and may hold any character, others of them too.
  const size_t open = text.find('(');
  const size_t close = text.rfind(')');
  if (open == text.npos || close == text.npos || close < open || close + 2 >= text.size()) return;
  state.name = std::string(text.substr(open + 1, close - open - 1));
  state.state = text[close + 2];
}

std::string ParseSystemCall(absl::string_view text) {
  const absl::string_view first = absl::StripAsciiWhitespace(text.substr(0, text.find(' ')));
  long number = -1;
  if (!absl::SimpleAtoi(first, &number) || number < 0) return "";
  for (const auto& [known, name] : kSystemCalls) {
    if (known == number) return name;
  }
  return absl::StrCat("number ", number);
}

std::string ParseStatusField(absl::string_view text, absl::string_view field) {
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (!absl::StartsWith(line, field) || line.size() <= field.size() || line[field.size()] != ':') continue;
    return std::string(absl::StripAsciiWhitespace(line.substr(field.size() + 1)));
  }
  return "";
}

std::vector<int> ThreadsOf(int pid) { return NumbersIn(absl::StrCat("/proc/", pid, "/task")); }

ThreadState StateOfThread(int pid, int tid) {
  ThreadState state;
  state.tid = tid;
  ParseStat(ThreadFile(pid, tid, "stat"), state);
  const std::string channel = ThreadFile(pid, tid, "wchan");
  if (channel != "0") state.waits_in = channel;
  state.system_call = ParseSystemCall(ThreadFile(pid, tid, "syscall"));
  return state;
}

bool BlocksSignal(int pid, int tid, int signal) {
  const std::string blocked = ParseStatusField(ThreadFile(pid, tid, "status"), "SigBlk");
  uint64_t mask = 0;
  return absl::SimpleHexAtoi(blocked, &mask) && (mask >> (signal - 1)) % 2 == 1;
}

std::string StateText(char state) {
  switch (state) {
    case 'R':
      return "runs";
    case 'S':
      return "sleeps";
    case 'D':
      return "sleeps in the kernel, and no signal wakes it";
    case 'T':
      return "is stopped";
    case 't':
      return "is held by a debugger";
    case 'Z':
    case 'X':
      return "has ended";
    case 'I':
      return "is idle";
    default:
      return "is in an unknown state";
  }
}

absl::StatusOr<ProcessState> StateOfProcess(int pid) {
  ThreadState first;
  ParseStat(ThreadFile(pid, pid, "stat"), first);
  if (first.state == '?') return absl::NotFoundError(absl::StrCat("there is no process ", pid));
  const std::string tracer = ParseStatusField(ThreadFile(pid, pid, "status"), "TracerPid");
  return ProcessState{.state = first.state, .debugged = !tracer.empty() && tracer != "0"};
}

absl::StatusOr<std::unique_ptr<PageView>> PageView::Of(int pid) {
  const std::string folder = absl::StrCat("/proc/", pid, "/fd");
  if (access(folder.c_str(), R_OK | X_OK) != 0 && errno == EACCES) {
    return absl::PermissionDeniedError(absl::StrCat("process ", pid, " belongs to another user"));
  }
  const std::string wanted = absl::StrCat("/memfd:", kPageName, " (deleted)");
  for (const int number : NumbersIn(folder)) {
    const std::string link = absl::StrCat(folder, "/", number);
    char target[PATH_MAX];
    const ssize_t n = readlink(link.c_str(), target, sizeof target);
    if (n < 0 || absl::string_view(target, static_cast<size_t>(n)) != wanted) continue;
    const int fd = open(link.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) continue;
    struct stat info;
    const bool fits = fstat(fd, &info) == 0 && info.st_size == static_cast<off_t>(sizeof(Page)) &&
                      (fcntl(fd, F_GET_SEALS) & kPageSeals) == kPageSeals;
    void* const memory = fits ? mmap(nullptr, sizeof(Page), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    close(fd);
    if (memory == MAP_FAILED) continue;
    std::unique_ptr<PageView> view(new PageView(static_cast<const Page*>(memory)));
    // A child between fork and exec has its parent's.
    if (view->page().magic.load(std::memory_order_acquire) == kPageMagic && view->page().pid == pid) return view;
  }
  return absl::NotFoundError(
      absl::StrCat("process ", pid, " is no chief or worker of this version of lockstep, or is gone"));
}

PageView::~PageView() { munmap(const_cast<Page*>(page_), sizeof(Page)); }

std::vector<int> FindProcesses() {
  std::vector<int> found;
  for (const int pid : NumbersIn("/proc")) {
    const auto view = PageView::Of(pid);
    if (view.ok() && !(*view)->page().role.Get().empty()) found.push_back(pid);
  }
  return found;
}

}  // namespace lockstep::liveness
