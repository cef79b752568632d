#include "tests/e2e/hosted_job.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "deploy/cli/admin_client.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

constexpr absl::Duration kLimit = absl::Seconds(120);
constexpr absl::Duration kAskDeadline = absl::Seconds(2);
constexpr uint64_t kStepsTogether = 50;
constexpr int kPollMs = 2;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string NameOf(int number) { return absl::StrCat("worker-", number); }

}  // namespace

HostedJob::HostedJob(const std::string& name, std::string job, std::vector<std::string> overrides, int workers,
                     int retries)
    : hosts_(workers + 1),
      directory_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name, ".", getpid())),
      job_(std::move(job)),
      overrides_(std::move(overrides)),
      workers_(workers) {
  fs::remove_all(directory_);
  fs::remove_all(Records());
  fs::create_directories(Records());
  // Hosts have one file system here, in which a worker would find the socket that its chief has for its own host beside
  // the file of its address: past every network. By another name it finds the address alone.
  fs::remove(SeenAddress());
  fs::create_symlink(directory_ + "/chief/address", SeenAddress());
  StartChief();
  for (int number = 1; number <= workers; ++number) {
    hosts_.GiveUpConnectionsAfter(number, retries);
    StartWorker(number);
  }
  WaitForTeam(workers);
}

HostedJob::~HostedJob() {
  processes_.clear();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  fs::remove_all(Records(), ignored);
  fs::remove(SeenAddress(), ignored);
}

void HostedJob::StartChief() {
  std::vector<std::string> words = {"chief",
                                    job_,
                                    "--dir",
                                    directory_,
                                    "--listen",
                                    hosts_.Address(kChiefHost) + ":0",
                                    "--expected-workers",
                                    absl::StrCat(workers_)};
  for (const std::string& set : overrides_) words.insert(words.end(), {"--set", set});
  Start("chief", kChiefHost, std::move(words));
}

void HostedJob::StartWorker(int number) {
  Start(NameOf(number), number,
        {"worker", "--chief-file", SeenAddress(), "--token-file", directory_ + "/chief/token", "--name", NameOf(number),
         "--peer-host", hosts_.Address(number), "--record", Records()});
}

void HostedJob::Start(const std::string& name, int host, const std::vector<std::string>& words) {
  std::vector<std::string> line = {kLockstep};
  line.insert(line.end(), words.begin(), words.end());
  processes_.insert_or_assign(name, hosts_.Start(host, line, LogPath(name)));
}

Process& HostedJob::worker(int number) { return processes_.at(NameOf(number)); }

std::optional<proto::StatusReply> HostedJob::Status() const {
  const auto client = cli::AdminClient::ForDirectory(directory_);
  if (!client.ok()) return std::nullopt;
  auto reply = (*client)->Status(kAskDeadline);
  if (!reply.ok()) return std::nullopt;
  return *std::move(reply);
}

void HostedJob::WaitFor(const std::string& what, const std::function<bool()>& condition) {
  const absl::Time until = absl::Now() + kLimit;
  while (!condition()) {
    if (absl::Now() >= until) GiveUp(absl::StrCat("waited in vain for ", what));
    for (auto& [name, process] : processes_) {
      if (!process.Running()) GiveUp(absl::StrCat(name, " ended before ", what));
    }
    poll(nullptr, 0, kPollMs);
  }
}

void HostedJob::WaitForStatus(const std::string& what,
                              const std::function<bool(const proto::StatusReply&)>& condition) {
  WaitFor(what, [&] {
    const auto status = Status();
    return status.has_value() && condition(*status);
  });
}

void HostedJob::WaitForTeam(int size) {
  std::optional<uint64_t> since;
  uint64_t counter = 0;
  WaitForStatus(absl::StrCat(size, " members that step"), [&](const proto::StatusReply& status) {
    const auto members = std::count_if(status.workers().begin(), status.workers().end(),
                                       [](const proto::WorkerStatus& one) { return one.state() == "member"; });
    const bool together = status.phase() == "RUNNING" && members == size;
    if (!together || status.generation().counter() != counter) since.reset();
    counter = status.generation().counter();
    if (together && !since.has_value()) since = status.step();
    return together && status.step() >= *since + kStepsTogether;
  });
}

int64_t HostedJob::Stop() {
  std::string output;
  const Ended stop = LocalJob::RunCommand({"stop", "--dir", directory_}, &output);
  if (stop != Ended{}) GiveUp(absl::StrCat("lockstep stop failed: ", output));
  for (auto& [name, process] : processes_) {
    const std::optional<Ended> ended = process.Wait(kLimit);
    if (!ended.has_value()) GiveUp(absl::StrCat(name, " does not end"));
    if (*ended != Ended{}) GiveUp(absl::StrCat(name, " ended with code ", ended->code, ", signal ", ended->signal));
  }
  const std::string latest = ReadAll(directory_ + "/latest");
  int64_t step = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(absl::StripAsciiWhitespace(latest), "step-"), &step)) {
    GiveUp(absl::StrCat("no step was saved: '", latest, "'"));
  }
  return step;
}

int HostedJob::Applied(int number) const {
  const std::string prefix = absl::StrCat("worker-", processes_.at(NameOf(number)).pid(), "-");
  int steps = 0;
  for (const auto& entry : fs::directory_iterator(Records())) {
    if (!absl::StartsWith(entry.path().filename().string(), prefix)) continue;
    for (const absl::string_view line : absl::StrSplit(ReadAll(entry.path()), '\n')) {
      steps += absl::StrContains(line, " StepFinished{") ? 1 : 0;
    }
  }
  return steps;
}

int HostedJob::Generations() const {
  int count = 0;
  for (const absl::string_view line : absl::StrSplit(LogOf("chief"), '\n')) {
    // "generation 1.3: worker-1, worker-2 at step 80, from the state of worker-1"
    const std::vector<absl::string_view> words = absl::StrSplit(line, "generation ");
    if (words.size() == 2 && absl::StrContains(words[1].substr(0, words[1].find(' ')), ':')) ++count;
  }
  return count;
}

std::string HostedJob::LogOf(const std::string& process) const { return ReadAll(LogPath(process)); }

void HostedJob::GiveUp(const std::string& what) const {
  std::string message = absl::StrCat(what, "\n");
  for (const auto& [name, process] : processes_) {
    const std::string log = LogOf(name);
    absl::StrAppend(&message, "--- ", name, "\n", log.size() > 4000 ? log.substr(log.size() - 4000) : log);
  }
  throw std::runtime_error(message);
}

}  // namespace lockstep::e2e
