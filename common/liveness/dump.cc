#include "common/liveness/dump.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock/clock.h"
#include "common/clock/wall_time.h"
#include "common/liveness/dump_text.h"
#include "common/liveness/stacks.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "common/sync/queue.h"
#include "common/sync/stop_signals.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using liveness::OwnPage;

constexpr time_t kBeatSeconds = 1;
constexpr absl::Duration kAnswerLimit = absl::Milliseconds(300);
constexpr absl::Duration kNamesLimit = absl::Seconds(1);
constexpr size_t kKeptDumps = 20;
constexpr int kMostNumbers = 1000;
constexpr size_t kQueuedRequests = 16;

// A dump that somebody waits for, or nobody any more.
struct Request {
  std::string reason;
  Mutex mutex;
  CondVar changed;
  bool done GUARDED_BY(mutex) = false;
  absl::StatusOr<WrittenDump> result GUARDED_BY(mutex) = absl::UnknownError("not written yet");
};

liveness::DumpFacts Collect(const std::string& reason) {
  liveness::DumpFacts facts;
  facts.role = OwnPage().role.Get();
  facts.pid = getpid();
  facts.time = WallTimeText();
  facts.reason = reason;
  // First what they do: a signal may wake one.
  facts.threads = liveness::FactsWithoutStacks(getpid(), OwnPage(), "it did not answer, or keeps signals away");
  const std::vector<liveness::ThreadStack> stacks = liveness::CollectStacks(kAnswerLimit);
  liveness::Symbols symbols(SteadyNow() + kNamesLimit);
  for (liveness::ThreadFacts& thread : facts.threads) {
    const auto stack =
        std::find_if(stacks.begin(), stacks.end(), [&](const auto& one) { return one.tid == thread.state.tid; });
    if (stack == stacks.end()) thread.no_stack = "it has ended meanwhile";
    if (stack == stacks.end() || !stack->answered) continue;
    for (size_t i = 0; i < stack->frames.size(); ++i) {
      thread.frames.push_back(symbols.NameOf(stack->frames[i], /*is_return=*/i > 0));
    }
  }
  return facts;
}

absl::Status WriteWhole(int fd, const std::string& path, absl::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
    text.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> WriteNewFile(const std::string& folder, const std::string& name, absl::string_view text) {
  mkdir(folder.c_str(), 0777);
  int error = EEXIST;
  int number = static_cast<int>(OwnPage().dumps) + 1;
  for (int tries = 0; tries < kMostNumbers && error == EEXIST; ++tries, ++number) {
    std::string path = absl::StrCat(folder, "/", name, "-", number, ".txt");
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    error = errno;
    if (fd < 0) continue;
    const absl::Status written = WriteWhole(fd, path, text);
    close(fd);
    if (!written.ok()) unlink(path.c_str());
    LS_RETURN_IF_ERROR(written);
    return path;
  }
  return absl::ErrnoToStatus(error, absl::StrCat("cannot make a file in ", folder));
}

// The name of a role as a part of a file's: people name workers.
std::string RoleInPath(std::string role) {
  std::replace_if(
      role.begin(), role.end(), [](char c) { return !absl::ascii_isalnum(c) && c != '-' && c != '.'; }, '_');
  return role;
}

// "4711-3.txt": the process and the number of its dump.
bool IsDumpNumber(absl::string_view text) {
  const std::vector<absl::string_view> parts = absl::StrSplit(text, '-');
  int number = 0;
  return parts.size() == 2 && absl::SimpleAtoi(parts[0], &number) && absl::EndsWith(parts[1], ".txt") &&
         absl::SimpleAtoi(parts[1].substr(0, parts[1].size() - 4), &number);
}

// Keeps the newest dumps of a role, whose names begin so.
void RemoveOldDumps(const std::string& folder, const std::string& prefix) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error); !error && entry != fs::directory_iterator();
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, prefix) || !IsDumpNumber(absl::string_view(name).substr(prefix.size()))) continue;
    std::error_code none;
    found.emplace_back(fs::last_write_time(entry->path(), none), entry->path());
  }
  std::sort(found.begin(), found.end());
  for (size_t i = 0; i + kKeptDumps < found.size(); ++i) fs::remove(found[i].second, error);
}

std::string AbsolutePath(const std::string& folder) {
  std::error_code error;
  const fs::path absolute = fs::absolute(folder, error);
  return folder.empty() || error ? folder : absolute.lexically_normal().string();
}

std::string TemporaryFolder() {
  const char* const folder = std::getenv("TMPDIR");
  return folder == nullptr || *folder == '\0' ? "/tmp" : folder;
}

absl::StatusOr<WrittenDump> CollectAndWrite(const std::string& reason) {
  liveness::DumpFacts facts = Collect(reason);
  WrittenDump dump{.path = "", .doing = liveness::SummaryOf(facts)};
  const std::string prefix = absl::StrCat("dump-", RoleInPath(facts.role), "-");
  const std::string name = absl::StrCat(prefix, facts.pid);
  const std::string text = liveness::FormatDump(std::move(facts));
  const std::string folder = OwnPage().folder.Get();
  absl::StatusOr<std::string> path = absl::NotFoundError("no folder for dumps is known");
  if (!folder.empty()) path = WriteNewFile(folder, name, text);
  if (!path.ok()) {
    const absl::Status refused = path.status();
    path = WriteNewFile(TemporaryFolder(), name, text);
    if (!path.ok()) return refused;
  } else {
    RemoveOldDumps(folder, prefix);
  }
  dump.path = *std::move(path);
  OwnPage().last_dump.Set(dump.path);
  ++OwnPage().dumps;
  return dump;
}

class Dumper {
 public:
  Dumper() : requests_(kQueuedRequests) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigdelset(&all, StackSignal());
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread([this] { Beat(); }).detach();
    std::thread([this] { Write(); }).detach();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  std::shared_ptr<Request> Ask(const std::string& reason) {
    auto request = std::make_shared<Request>();
    request->reason = reason;
    return requests_.TryPush(request) ? request : nullptr;
  }

 private:
  void Beat() {
    NameThread("liveness");
    sigset_t asked;
    sigemptyset(&asked);
    sigaddset(&asked, SIGQUIT);
    for (;;) {
      OwnPage().beat_ns.store(liveness::MonotonicNs(), std::memory_order_relaxed);
      const timespec pause{.tv_sec = kBeatSeconds, .tv_nsec = 0};
      if (sigtimedwait(&asked, nullptr, &pause) == SIGQUIT) Ask("it was asked to");
    }
  }

  void Write() {
    NameThread("dump");
    while (const auto next = requests_.Pop()) {
      Request& request = **next;
      absl::StatusOr<WrittenDump> result = CollectAndWrite(request.reason);
      if (result.ok()) {
        LS_LOG(info, "wrote what its threads do to ", result->path, ": ", request.reason);
      } else {
        LS_LOG(warn, "no dump: ", result.status().message());
      }
      MutexLock lock(&request.mutex);
      request.result = std::move(result);
      request.done = true;
      request.changed.SignalAll();
    }
  }

  BoundedQueue<std::shared_ptr<Request>> requests_;
};

std::atomic<Dumper*> dumper{nullptr};

}  // namespace

void StartLiveness(const std::string& role, const std::string& folder) {
  sigset_t asked;
  sigemptyset(&asked);
  sigaddset(&asked, SIGQUIT);
  pthread_sigmask(SIG_BLOCK, &asked, nullptr);
  liveness::InstallStackSignal();
  liveness::Page& page = OwnPage();
  page.folder.Set(AbsolutePath(folder));
  page.beat_ns.store(liveness::MonotonicNs());
  dumper = new Dumper;
  page.role.Set(role);
}

void SetLivenessRole(const std::string& role) {
  if (dumper != nullptr) OwnPage().role.Set(role);
}

void SetDumpFolder(const std::string& folder) {
  if (dumper != nullptr) OwnPage().folder.Set(AbsolutePath(folder));
}

absl::StatusOr<WrittenDump> WriteDump(const std::string& reason) {
  if (dumper == nullptr) return absl::FailedPreconditionError("this process writes no dumps");
  const std::shared_ptr<Request> request = dumper.load()->Ask(reason);
  if (request == nullptr) return absl::ResourceExhaustedError("too many dumps are asked for");
  const absl::Time until = SteadyNow() + kDumpLimit;
  MutexLock lock(&request->mutex);
  while (!request->done) {
    const absl::Duration left = until - SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError(absl::StrCat("no dump was written within ", absl::FormatDuration(kDumpLimit)));
    }
    request->changed.WaitWithTimeout(&request->mutex, left);
  }
  return request->result;
}

std::string DumpForLine(const std::string& reason) {
  const absl::StatusOr<WrittenDump> dump = WriteDump(reason);
  liveness::DumpFacts facts;
  if (!dump.ok()) facts.threads = liveness::FactsWithoutStacks(getpid(), OwnPage(), "");
  const std::string doing = dump.ok() ? dump->doing : liveness::SummaryOf(facts);
  return absl::StrCat(doing.empty() ? "" : absl::StrCat(": ", doing),
                      dump.ok() ? absl::StrCat("; its stacks are in ", dump->path)
                                : absl::StrCat("; no stacks: ", dump.status().message()));
}

}  // namespace lockstep
