#include "tests/e2e/traced_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/traced_calls.h"

namespace lockstep::e2e {
namespace {

constexpr int kCannotFilter = 126;
constexpr int kSyscallStop = SIGTRAP | 0x80;
constexpr long kOptions = PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                          PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD;

int EventOf(int status) { return static_cast<unsigned>(status) >> 16; }

bool IsCallStop(int status) { return WIFSTOPPED(status) && EventOf(status) == PTRACE_EVENT_SECCOMP; }

// A stop signal's stop, in which a thread stays until it is continued by SIGCONT.
bool IsGroupStop(int status) {
  const int signal = WSTOPSIG(status);
  return EventOf(status) == PTRACE_EVENT_STOP &&
         (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU);
}

Ended EndOf(int status) { return WIFSIGNALED(status) ? Ended{0, WTERMSIG(status)} : Ended{WEXITSTATUS(status), 0}; }

std::set<pid_t> ThreadsOf(pid_t pid) {
  std::set<pid_t> threads;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/task"), ignored)) {
    threads.insert(std::atoi(entry.path().filename().c_str()));
  }
  return threads;
}

// The environment of this process. The address sanitizer's search for leaks traces the process itself, which only one
// tracer can.
std::vector<std::string> EnvironmentOfTraced() {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
    if (absl::StartsWith(environment.back(), "ASAN_OPTIONS=")) environment.back() += ":detect_leaks=0";
  }
  return environment;
}

// For exec; valid as long as `words` are.
std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What runs between fork and exec. `go` is written to once the tracer is there.
[[noreturn]] void BecomeTraced(const int (&go)[2], int log, char* const* argv, char* const* environment) {
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  close(go[1]);  // else the end of the tracer would not be seen
  char byte;
  if (read(go[0], &byte, 1) != 1 || !InstallCallFilter()) _exit(kCannotFilter);
  execve(argv[0], argv, environment);
  _exit(127);
}

}  // namespace

std::string TracedCall::Text() const { return absl::StrCat(name, " ", path); }

std::string TracedCall::Kind() const {
  std::string kind = name + " ";
  const std::string& text = path;
  for (size_t at = 0; at < text.size();) {
    size_t end = at;
    bool digits = true;
    while (end < text.size() && std::isxdigit(static_cast<unsigned char>(text[end])) != 0) {
      digits = digits && std::isdigit(static_cast<unsigned char>(text[end])) != 0;
      ++end;
    }
    constexpr size_t kRandom = 12;  // letters and digits of a random name, at least
    if (end > at && (digits || end - at >= kRandom)) {
      kind += '#';
    } else {
      end = std::max(end, at + 1);
      kind.append(text, at, end - at);
    }
    at = end;
  }
  return kind;
}

// Runs in the thread that does all of ptrace.
class TracedProcess::Tracer {
 public:
  explicit Tracer(TracedProcess& process) : process_(process) {}

  void Run() {
    if (!Start()) return;
    while (!ended_) {
      int status = 0;
      const pid_t thread = NextReport(status);
      if (thread > 0 && WIFSTOPPED(status)) On(thread, status);
      if (!hung_.empty()) LetHungGoOn();
    }
  }

 private:
  bool Start() {
    std::vector<std::string> words = process_.words_;
    std::vector<std::string> environment = EnvironmentOfTraced();
    const std::vector<char*> argv = Pointers(words);
    const std::vector<char*> variables = Pointers(environment);
    int go[2];
    const int log = open(process_.log_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log < 0 || pipe2(go, O_CLOEXEC) != 0) return Fail("no log and pipe can be had"), false;
    pid_ = fork();
    if (pid_ == 0) BecomeTraced(go, log, argv.data(), variables.data());
    close(log);
    close(go[0]);
    bool seized = pid_ > 0 && ptrace(PTRACE_SEIZE, pid_, nullptr, kOptions) == 0;
    const int error = errno;
    if (seized) seized = write(go[1], "g", 1) == 1;
    close(go[1]);
    if (!seized) {
      if (pid_ > 0) waitpid(pid_, nullptr, 0);
      return Fail(absl::StrCat("ptrace: ", std::strerror(error))), false;
    }
    const std::lock_guard lock(process_.mutex_);
    process_.pid_ = pid_;
    process_.changed_.notify_all();
    return true;
  }

  // Waits for the next thread that stops or ends. Below 0: there is none left.
  pid_t NextReport(int& status) {
    pid_t thread;
    do {
      thread = waitpid(-1, &status, __WALL | __WNOTHREAD);
    } while (thread < 0 && errno == EINTR);
    if (thread < 0) Fail(absl::StrCat("waitpid: ", std::strerror(errno)));
    if (thread == pid_ && !WIFSTOPPED(status)) End(EndOf(status));
    return thread;
  }

  void Fail(const std::string& what) {
    ended_ = true;
    const std::lock_guard lock(process_.mutex_);
    process_.failure_ = what;
    process_.ended_ = Ended{kCannotFilter, 0};
    process_.changed_.notify_all();
  }

  void End(Ended ended) {
    ended_ = true;
    const std::lock_guard lock(process_.mutex_);
    process_.ended_ = ended;
    process_.changed_.notify_all();
  }

  // A thread has stopped.
  void On(pid_t thread, int status) {
    if (IsCallStop(status)) return OnCall(thread);
    if (EventOf(status) == 0 && WSTOPSIG(status) == kSyscallStop) {  // behind the call that is hit
      kill(pid_, SIGKILL);
      return;
    }
    if (IsGroupStop(status)) {
      ptrace(PTRACE_LISTEN, thread, nullptr, nullptr);
      return;
    }
    Continue(thread, EventOf(status) == 0 ? WSTOPSIG(status) : 0);
  }

  static void Continue(pid_t thread, int signal) {
    ptrace(PTRACE_CONT, thread, nullptr, static_cast<long>(signal));  // fails when it was killed: its end follows
  }

  // The path as the job's directory has it; nullopt: it lies elsewhere.
  std::optional<std::string> Below(const std::string& path) const {
    const std::string& directory = process_.directory_;
    if (path == directory) return ".";
    if (!absl::StartsWith(path, directory + "/")) return std::nullopt;
    return path.substr(directory.size() + 1);
  }

  std::optional<TracedCall> Describe(const StoppedCall& stopped) const {
    const std::optional<std::string> first = Below(stopped.path);
    const std::optional<std::string> second = Below(stopped.second);
    if (!first.has_value() && !second.has_value()) return std::nullopt;
    std::string path = first.value_or(stopped.path);
    if (!stopped.second.empty()) absl::StrAppend(&path, " -> ", second.value_or(stopped.second));
    return TracedCall{stopped.name, path};
  }

  void OnCall(pid_t thread) {
    user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, thread, nullptr, &registers) != 0) return;  // it was killed
    const std::optional<StoppedCall> stopped = CallOf(thread, registers);
    const std::optional<TracedCall> call = stopped.has_value() ? Describe(*stopped) : std::nullopt;
    if (!call.has_value() || !IsHit(*call)) return Continue(thread, 0);
    switch (process_.hit_.kind) {
      case HitKind::kNone:
        break;
      case HitKind::kKillBefore:
        kill(pid_, SIGKILL);  // a call that a thread stands before is not made any more
        return;
      case HitKind::kKillAfter:
        ptrace(PTRACE_SYSCALL, thread, nullptr, nullptr);
        return;
      case HitKind::kFail:
        if (stopped->syncs) Keep(thread, stopped->descriptor);
        registers.orig_rax = static_cast<unsigned long long>(-1);
        registers.rax = static_cast<unsigned long long>(-process_.hit_.error);
        ptrace(PTRACE_SETREGS, thread, nullptr, &registers);
        break;
      case HitKind::kHold:
        return Hold(thread);
      case HitKind::kHang:
        return Hang(thread);
    }
    Continue(thread, 0);
  }

  bool IsHit(const TracedCall& call) {
    const std::lock_guard lock(process_.mutex_);
    if (process_.hit_.kind == HitKind::kHang && process_.was_hit_.has_value()) return !process_.released_;
    if (!process_.hit_.counts(call)) return false;
    process_.calls_.push_back(call);
    if (process_.hit_.kind == HitKind::kNone || process_.was_hit_.has_value()) return false;
    if (process_.calls_.size() != static_cast<size_t>(process_.hit_.call)) return false;
    process_.was_hit_ = call;
    return true;
  }

  void Keep(pid_t thread, int descriptor) const {
    const std::string link = absl::StrCat("/proc/", thread, "/fd/", descriptor);
    const int kept = open(link.c_str(), O_PATH | O_CLOEXEC);
    const std::lock_guard lock(process_.mutex_);
    process_.synced_ = kept;
  }

  // Stops all threads while `first` stands before its call, waits for Release, and lets all of them go on.
  void Hold(pid_t first) {
    std::map<pid_t, std::optional<int>> stopped = {{first, std::nullopt}};  // and how, where it is to be told to On
    std::set<pid_t> asked = {first};
    while (true) {
      bool all = true;
      for (const pid_t thread : ThreadsOf(pid_)) {
        if (stopped.contains(thread)) continue;
        all = false;
        if (asked.insert(thread).second) ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
      }
      if (all) break;
      int status = 0;
      const pid_t thread = NextReport(status);
      if (ended_) return;
      if (WIFSTOPPED(status)) stopped[thread] = status;
    }
    AwaitRelease();
    Continue(first, 0);
    for (const auto& [thread, status] : stopped) {
      if (status.has_value()) On(thread, *status);
    }
  }

  // Leaves the thread before its call. Release makes another report come, behind which it goes on.
  void Hang(pid_t thread) {
    hung_.push_back(thread);
    const std::lock_guard lock(process_.mutex_);
    process_.held_ = true;
    process_.changed_.notify_all();
  }

  void LetHungGoOn() {
    {
      const std::lock_guard lock(process_.mutex_);
      if (!process_.released_) return;
      process_.held_ = false;
    }
    for (const pid_t thread : std::exchange(hung_, {})) Continue(thread, 0);
  }

  void AwaitRelease() {
    std::unique_lock lock(process_.mutex_);
    process_.held_ = true;
    process_.changed_.notify_all();
    process_.changed_.wait(lock, [this] { return process_.released_; });
    process_.held_ = false;
  }

  TracedProcess& process_;
  pid_t pid_ = -1;
  bool ended_ = false;
  std::vector<pid_t> hung_;
};

bool TracedProcess::Allowed(const std::string& what) {
  static const std::string why = [] {
    const std::string log = absl::StrCat(std::getenv("TEST_TMPDIR"), "/traced.", getpid());
    TracedProcess process({"/bin/true"}, log, "/nowhere", {});
    process.Wait(absl::InfiniteDuration());
    std::filesystem::remove(log);
    const std::lock_guard lock(process.mutex_);
    if (process.ended_ == Ended{}) return std::string();
    return absl::StrCat("needs the right to trace its own child (ptrace and seccomp filters)",
                        process.failure_.empty() ? "" : ": ", process.failure_);
  }();
  if (!why.empty()) std::cout << "SKIPPED: '" << what << "' " << why << "\n";
  return why.empty();
}

TracedProcess::TracedProcess(std::vector<std::string> words, std::string log, const std::string& directory, Hit hit)
    : words_(std::move(words)), log_(std::move(log)), directory_(directory), hit_(std::move(hit)) {
  thread_ = std::thread([this] { Tracer(*this).Run(); });
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return pid_ > 0 || ended_.has_value(); });
}

TracedProcess::~TracedProcess() {
  if (Running()) Signal(SIGKILL);
  Release();
  thread_.join();
  if (synced_ >= 0) close(synced_);
}

std::optional<bool> TracedProcess::WaitUntilHeld(absl::Duration limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(limit), [this] { return held_ || ended_.has_value(); });
  if (!held_ && !ended_.has_value()) return std::nullopt;
  return held_;
}

void TracedProcess::Release() {
  const std::lock_guard lock(mutex_);
  released_ = true;
  changed_.notify_all();
  // A thread that stops for it wakes the tracer; to the process it means nothing.
  if (hit_.kind == HitKind::kHang && pid_ > 0 && !ended_.has_value()) kill(pid_, SIGURG);
}

std::optional<Ended> TracedProcess::Wait(absl::Duration limit) {
  std::unique_lock lock(mutex_);
  const auto ended = [this] { return ended_.has_value(); };
  if (limit == absl::InfiniteDuration()) {
    changed_.wait(lock, ended);
  } else {
    changed_.wait_for(lock, absl::ToChronoNanoseconds(limit), ended);
  }
  return ended_;
}

void TracedProcess::Signal(int number) const {
  const std::lock_guard lock(mutex_);
  if (pid_ > 0 && !ended_.has_value()) kill(pid_, number);
}

std::vector<TracedCall> TracedProcess::calls() const {
  const std::lock_guard lock(mutex_);
  return calls_;
}

std::optional<TracedCall> TracedProcess::hit() const {
  const std::lock_guard lock(mutex_);
  return was_hit_;
}

std::string TracedProcess::FileOfFailedSync() const {
  const std::lock_guard lock(mutex_);
  if (synced_ < 0) return "";
  std::error_code ignored;
  return std::filesystem::read_symlink(absl::StrCat("/proc/self/fd/", synced_), ignored).string();
}

}  // namespace lockstep::e2e
