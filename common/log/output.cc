#include "common/log/output.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>

#include "common/clock/clock.h"
#include "common/sync/stop_signals.h"

namespace lockstep {
namespace {

constexpr size_t kQueuedBytes = size_t{1} << 20;
constexpr int kUsualColumns = 80;
constexpr std::string_view kErase = "\r\x1b[K";

int ColumnsOf(int fd) {
  winsize size = {};
  return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsualColumns;
}

bool SamePlace(int a, int b) {
  struct stat first = {};
  struct stat second = {};
  return fstat(a, &first) == 0 && fstat(b, &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

}  // namespace

OutputQueue::OutputQueue(size_t limit_bytes) : limit_bytes_(limit_bytes) {
  // A signal that this thread took would not reach the one that waits for it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigdelset(&all, StackSignal());
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread([this] { Run(); }).detach();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void OutputQueue::Write(int fd, std::string text, OutputKind kind) {
  MutexLock lock(&mutex_);
  const auto fits = [&] { return bytes_ + text.size() <= limit_bytes_; };
  for (auto entry = entries_.begin(); !fits() && entry != entries_.end();) {
    if (entry->kind == OutputKind::kProgress) {
      bytes_ -= entry->text.size();
      ++dropped_.progress;
      entry = entries_.erase(entry);
    } else {
      ++entry;
    }
  }
  if (!fits() && kind != OutputKind::kLast) {
    ++(kind == OutputKind::kProgress ? dropped_.progress : dropped_.lines);
    return;
  }
  bytes_ += text.size();
  idle_ = false;
  entries_.push_back({fd, std::move(text), kind});
  changed_.SignalAll();
}

void OutputQueue::SetLive(int fd, LiveLine line) {
  MutexLock lock(&mutex_);
  live_changed_ = line != nullptr || live_shown_;
  if (line != nullptr) live_fd_ = fd;
  live_ = std::move(line);
  changed_.SignalAll();
}

void OutputQueue::ShareTerminal() {
  MutexLock lock(&mutex_);
  shared_ = true;
}

DroppedOutput OutputQueue::TakeDropped() {
  MutexLock lock(&mutex_);
  if (bytes_ > limit_bytes_ / 2) return {};
  return std::exchange(dropped_, {});
}

bool OutputQueue::Flush(absl::Duration patience) {
  const SteadyClock clock;
  MutexLock lock(&mutex_);
  int64_t seen = written_;
  absl::Time until = clock.Now() + patience;
  while (HasWork() || writing_) {
    const absl::Time now = clock.Now();
    if (seen != written_) {
      seen = written_;
      until = now + patience;
    }
    if (now >= until) return false;
    changed_.WaitWithTimeout(&mutex_, until - now);
  }
  return true;
}

OutputQueue::Entry OutputQueue::TakeNext() {
  Entry next{live_fd_, live_shown_ || shared_ ? std::string(kErase) : "", OutputKind::kLine};
  live_shown_ = false;
  if (!entries_.empty()) {
    next.fd = entries_.front().fd;
    next.text += entries_.front().text;
    bytes_ -= entries_.front().text.size();
    entries_.pop_front();
    live_changed_ = live_ != nullptr;
    return next;
  }
  live_changed_ = false;
  if (live_ == nullptr) return next;
  live_shown_ = true;
  // One column stays free: terminals differ in where the cursor is behind a full row.
  next.text = std::string("\r") + live_(std::max(1, ColumnsOf(live_fd_) - 1)) + "\x1b[K";
  return next;
}

void OutputQueue::Run() {
  pthread_setname_np(pthread_self(), "log");
  for (;;) {
    Entry next;
    {
      MutexLock lock(&mutex_);
      while (!HasWork()) changed_.Wait(&mutex_);
      next = TakeNext();
      writing_ = true;
    }
    WriteAll(next.fd, next.text);
    MutexLock lock(&mutex_);
    writing_ = false;
    if (!HasWork()) idle_ = true;
    changed_.SignalAll();
  }
}

void OutputQueue::WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size() && dead_.count(fd) == 0;) {
    const ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {  // somebody who shares it made it non-blocking
      pollfd ready{fd, POLLOUT, 0};
      poll(&ready, 1, -1);
      continue;
    }
    // The disk, the quota or the limit of the file's size may have room for a later one.
    if (n < 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) return;
    if (n <= 0) {
      dead_.insert(fd);
      return;
    }
    done += static_cast<size_t>(n);
    MutexLock lock(&mutex_);
    ++written_;
    changed_.SignalAll();
  }
}

OutputQueue& ProcessOutput(int fd) {
  static OutputQueue* const errors = new OutputQueue(kQueuedBytes);
  static OutputQueue* const results = SamePlace(STDOUT_FILENO, STDERR_FILENO) ? errors : new OutputQueue(kQueuedBytes);
  return fd == STDOUT_FILENO ? *results : *errors;
}

TerminalStyle ChooseStyle(bool is_terminal, const char* no_color, const char* term) {
  const std::string_view kind = term == nullptr ? "" : term;
  TerminalStyle style;
  style.live = is_terminal && !kind.empty() && kind != "dumb";
  style.colour = style.live && (no_color == nullptr || *no_color == '\0');
  return style;
}

TerminalStyle StyleOf(int fd) { return ChooseStyle(isatty(fd) == 1, std::getenv("NO_COLOR"), std::getenv("TERM")); }

}  // namespace lockstep
