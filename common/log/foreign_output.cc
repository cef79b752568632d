#include "common/log/foreign_output.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <thread>
#include <utility>

#include "common/sync/stop_signals.h"

namespace lockstep {
namespace {

constexpr size_t kLongestLine = size_t{64} << 10;
// Of a line that does not end: it is handed over as it is then.
constexpr int kUnfinishedMs = 200;
constexpr int kAbortWaits = 100;
constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 10'000'000};

std::atomic<int> own_outputs[] = {-1, -1};  // of 1 and 2
std::atomic<int> pipe_end{-1};              // the reading one
std::atomic<bool> busy{false};              // the thread has bytes that it has not handed over

bool (*is_written)() = nullptr;

bool IsDrained() {
  int waiting = 0;
  return ioctl(pipe_end, FIONREAD, &waiting) != 0 || (waiting == 0 && !busy);
}

// Hands over the whole lines of `text`; what follows the last one stays.
void TakeLines(std::string& text, const std::function<void(absl::string_view)>& take) {
  size_t taken = 0;
  for (size_t end; (end = text.find('\n', taken)) != std::string::npos; taken = end + 1) {
    if (end > taken) take(absl::string_view(text).substr(taken, end - taken));
  }
  text.erase(0, taken);
  if (text.size() < kLongestLine) return;
  take(text);
  text.clear();
}

void Read(int fd, const std::function<void(absl::string_view)>& take) {
  pthread_setname_np(pthread_self(), "foreign output");
  std::string text;
  for (char buffer[4096];;) {
    pollfd ready{fd, POLLIN, 0};
    const int n = poll(&ready, 1, text.empty() ? -1 : kUnfinishedMs);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) {
      take(text);
      text.clear();
      busy = false;
      continue;
    }
    busy = true;
    const ssize_t bytes = read(fd, buffer, sizeof buffer);
    if (bytes <= 0 && errno != EINTR) return;
    if (bytes > 0) text.append(buffer, static_cast<size_t>(bytes));
    TakeLines(text, take);
    busy = !text.empty();
  }
}

// The one moment at which the thread has to be waited for: nothing comes afterwards. Async-signal-safe.
void OnAbort(int) {
  for (int i = 0; i < kAbortWaits && !(IsDrained() && is_written()); ++i) nanosleep(&kPause, nullptr);
}

}  // namespace

void CaptureForeignOutput(std::function<void(absl::string_view line)> take, bool (*written)()) {
  static std::atomic<bool> begun{false};
  if (begun.exchange(true)) return;
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return;
  const int own[] = {fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 10), fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10)};
  if (own[0] < 0 || own[1] < 0) {
    for (const int fd : {ends[0], ends[1], own[0], own[1]}) {
      if (fd >= 0) close(fd);
    }
    return;
  }
  own_outputs[0] = own[0];
  own_outputs[1] = own[1];
  pipe_end = ends[0];
  is_written = written;
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, StackSignal());
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([fd = ends[0], take = std::move(take)] { Read(fd, take); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(ends[1], fd);
  close(ends[1]);
  struct sigaction action = {};
  action.sa_handler = OnAbort;
  action.sa_flags = SA_RESETHAND;
  sigaction(SIGABRT, &action, nullptr);
}

int OwnOutput(int fd) {
  if (fd != STDOUT_FILENO && fd != STDERR_FILENO) return fd;
  const int own = own_outputs[fd - STDOUT_FILENO];
  return own < 0 ? fd : own;
}

void DrainForeignOutput(absl::Duration patience) {
  if (pipe_end < 0) return;
  for (int64_t i = absl::ToInt64Milliseconds(patience) / 10; i > 0 && !IsDrained(); --i) nanosleep(&kPause, nullptr);
}

}  // namespace lockstep
