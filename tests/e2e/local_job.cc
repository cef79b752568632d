#include "tests/e2e/local_job.h"

#include <fcntl.h>
#include <google/protobuf/util/json_util.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "chief/core/coordinator.h"
#include "common/protocol/recording.h"
#include "deploy/cli/admin_client.h"
#include "worker/session/session_core.h"

namespace lockstep::e2e {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(120);
constexpr absl::Duration kAskDeadline = absl::Seconds(2);
constexpr int kPollMs = 2;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Lets other processes go on between two looks at a condition.
void Yield() { poll(nullptr, 0, kPollMs); }

}  // namespace

Process::Process(const std::vector<std::string>& words, const std::string& log)
    : Process(words, [&log] {
        const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
        dup2(fd, STDOUT_FILENO);
        dup2(fd, STDERR_FILENO);
      }) {}

Process::Process(const std::vector<std::string>& words, const std::function<void()>& in_child) {
  std::vector<std::string> copy = words;
  std::vector<char*> argv;
  for (std::string& word : copy) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) throw std::runtime_error("fork failed");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);
  in_child();
  execv(argv[0], argv.data());
  _exit(127);
}

Process::~Process() {
  if (pid_ < 0 || ended_.has_value()) return;
  Signal(SIGKILL);
  Wait(absl::InfiniteDuration());
}

Process::Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)), ended_(other.ended_) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(ended_, other.ended_);
  return *this;
}

void Process::Signal(int number) const { kill(pid_, number); }

bool Process::Running() { return !Wait(absl::ZeroDuration()).has_value(); }

std::optional<Ended> Process::Wait(absl::Duration limit) {
  const absl::Time deadline = absl::Now() + limit;
  while (!ended_.has_value()) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      ended_ = WIFSIGNALED(status) ? Ended{0, WTERMSIG(status)} : Ended{WEXITSTATUS(status), 0};
    } else if (absl::Now() >= deadline) {
      return std::nullopt;
    } else {
      Yield();
    }
  }
  return ended_;
}

LocalJob::LocalJob(const std::string& name, std::string job, std::vector<std::string> overrides)
    : job_(std::move(job)), overrides_(std::move(overrides)) {
  if (job_ == kJob) overrides_.insert(overrides_.begin(), {kInputs, kLabels});
  directory_ = absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name, ".", getpid());
  std::filesystem::remove_all(directory_);
  records_ = directory_ + ".records";
  std::filesystem::remove_all(records_);
  std::filesystem::create_directories(records_);
}

LocalJob::~LocalJob() {
  processes_.clear();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
  std::filesystem::remove_all(records_, ignored);
}

void LocalJob::StartChief(int expected_workers) {
  std::vector<std::string> words = {
      kLockstep,  "chief", job_, "--dir", directory_, "--expected-workers", absl::StrCat(expected_workers),
      "--record", records_};
  for (const std::string& set : overrides_) words.insert(words.end(), {"--set", set});
  processes_.insert_or_assign("chief", Process(words, LogPath("chief")));
}

void LocalJob::StartWorker(int index, const std::vector<std::string>& more) {
  const std::string name = absl::StrCat("worker-", index);
  std::vector<std::string> words = {kLockstep,      "worker",
                                    "--chief-file", directory_ + "/chief/address",
                                    "--token-file", directory_ + "/chief/token",
                                    "--name",       name,
                                    "--record",     records_};
  words.insert(words.end(), more.begin(), more.end());
  processes_.insert_or_assign(name, Process(words, LogPath(name)));
}

Process& LocalJob::worker(int index) { return processes_.at(absl::StrCat("worker-", index)); }

void LocalJob::RunUndisturbed(int workers) {
  StartChief(workers);
  for (int i = 0; i < workers; ++i) StartWorker(i);
  // Whoever fails is named at once: the others would wait for it.
  const absl::Time deadline = absl::Now() + kLimit;
  for (size_t ended = 0; ended < processes_.size(); Yield()) {
    ended = 0;
    for (auto& [name, process] : processes_) {
      if (process.Running()) {
        if (absl::Now() >= deadline) GiveUp(absl::StrCat(name, " does not end"));
        continue;
      }
      ++ended;
      const Ended end = WaitForEnd(name);
      if (end != Ended{}) GiveUp(absl::StrCat(name, " ended with code ", end.code, ", signal ", end.signal));
    }
  }
}

void LocalJob::Kill(const std::string& process) {
  Process& victim = processes_.at(process);
  if (!victim.Running()) GiveUp(absl::StrCat(process, " had ended before it was killed"));
  victim.Signal(SIGKILL);
  const Ended ended = WaitForEnd(process);
  if (ended.signal != SIGKILL) GiveUp(absl::StrCat(process, " did not die of the kill"));
}

void LocalJob::KillEverything() {
  for (auto& [name, process] : processes_) process.Signal(SIGKILL);
  for (auto& [name, process] : processes_) WaitForEnd(name);
}

std::optional<proto::StatusReply> LocalJob::Status() {
  // Asked again and again: a connection is kept while it answers. To end one takes gRPC a second now and then.
  static std::map<std::string, std::unique_ptr<cli::AdminClient>> clients;
  std::unique_ptr<cli::AdminClient>& client = clients[directory_];
  if (client == nullptr) {
    auto made = cli::AdminClient::ForDirectory(directory_);
    if (!made.ok()) return std::nullopt;
    client = *std::move(made);
  }
  auto reply = client->Status(kAskDeadline);
  if (!reply.ok()) {
    client.reset();
    return std::nullopt;
  }
  return *std::move(reply);
}

void LocalJob::WaitForStatus(const std::string& what, const std::function<bool(const proto::StatusReply&)>& condition) {
  const absl::Time deadline = absl::Now() + kLimit;
  while (absl::Now() < deadline) {
    const auto status = Status();
    if (status.has_value() && condition(*status)) return;
    auto chief = processes_.find("chief");
    if (chief != processes_.end() && !chief->second.Running()) GiveUp(absl::StrCat("the chief ended before ", what));
    Yield();
  }
  GiveUp(absl::StrCat("waited in vain for ", what));
}

void LocalJob::WaitForStep(uint64_t step) {
  WaitForStatus(absl::StrCat("step ", step),
                [step](const proto::StatusReply& status) { return status.step() >= step; });
}

Ended LocalJob::WaitForEnd(const std::string& process) {
  std::optional<Ended> ended = processes_.at(process).Wait(kLimit);
  if (!ended.has_value()) GiveUp(absl::StrCat(process, " does not end"));
  return *ended;
}

std::string LocalJob::Digest(std::optional<int64_t> step) const {
  std::vector<std::string> words = {"checkpoint", "digest", directory_};
  if (step.has_value()) words.insert(words.end(), {"--step", absl::StrCat(*step)});
  std::string output;
  const Ended ended = RunCommand(words, &output);
  if (ended != Ended{}) throw std::runtime_error(absl::StrCat("checkpoint digest failed: ", output));
  return std::string(absl::StripAsciiWhitespace(output));
}

WorkerStatsFile LocalJob::Stats() const {
  WorkerStatsFile stats;
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(ReadAll(directory_ + "/stats/worker_stats.json"), &stats);
  if (!parsed.ok()) throw std::runtime_error(absl::StrCat("worker_stats.json: ", parsed.ToString()));
  return stats;
}

Ended LocalJob::RunCommand(const std::vector<std::string>& words, std::string* output) {
  static int count = 0;
  const std::string log = absl::StrCat(std::getenv("TEST_TMPDIR"), "/command.", getpid(), ".", ++count);
  std::vector<std::string> all = {kLockstep};
  all.insert(all.end(), words.begin(), words.end());
  const std::optional<Ended> ended = Process(all, log).Wait(kLimit);
  *output = ReadAll(log);
  std::filesystem::remove(log);
  if (!ended.has_value()) throw std::runtime_error(absl::StrCat("lockstep ", words[0], " does not end: ", *output));
  return *ended;
}

std::string LocalJob::LogOf(const std::string& process) const { return ReadAll(LogPath(process)); }

int LocalJob::ReplayRecords() const {
  int replayed = 0;
  for (const auto& entry : std::filesystem::directory_iterator(records_)) {
    const std::string record = ReadAll(entry.path());
    if (record.find('\n') == std::string::npos) continue;  // killed before its first decision
    const bool chief = entry.path().filename().string().starts_with("chief");
    const auto result =
        chief ? Replay<chief::CoordinatorConfig, chief::Event>(
                    record, [](const chief::CoordinatorConfig& config) { return chief::Coordinator(config); })
              : Replay<worker::SessionConfig, worker::Event>(
                    record, [](const worker::SessionConfig& config) { return worker::SessionCore(config); });
    if (!result.ok()) throw std::runtime_error(absl::StrCat(entry.path().string(), ": ", result.status().message()));
    ++replayed;
  }
  return replayed;
}

void LocalJob::GiveUp(const std::string& what) {
  std::string message = absl::StrCat(what, "\n");
  for (const auto& [name, process] : processes_) {
    const std::string log = LogOf(name);
    absl::StrAppend(&message, "--- ", name, "\n", log.size() > 3000 ? log.substr(log.size() - 3000) : log);
  }
  throw std::runtime_error(message);
}

}  // namespace lockstep::e2e
