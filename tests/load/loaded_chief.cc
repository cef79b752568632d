#include "tests/load/loaded_chief.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/clock/clock.h"
#include "deploy/cli/admin_client.h"

namespace lockstep::load {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(60);
constexpr absl::Duration kLookEvery = absl::Milliseconds(5);
constexpr size_t kMostShards = 4096;

std::string ReadAll(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// A number of /proc/PID/status.
uint64_t FieldOf(const std::string& status, absl::string_view name) {
  const size_t at = status.find(absl::StrCat("\n", name, ":"));
  if (at == std::string::npos) return 0;
  absl::string_view rest = absl::string_view(status).substr(at + name.size() + 2);
  rest = absl::StripAsciiWhitespace(rest.substr(0, rest.find('\n')));
  rest = rest.substr(0, rest.find(' '));
  uint64_t value = 0;
  return absl::SimpleAtoi(rest, &value) ? value : 0;
}

}  // namespace

LoadedChief::LoadedChief(std::string directory, size_t workers, std::vector<std::string> settings)
    : directory_(std::move(directory)), workers_(workers), settings_(std::move(settings)) {
  std::filesystem::remove_all(directory_);
  std::filesystem::remove(directory_ + ".log");
}

LoadedChief::~LoadedChief() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void LoadedChief::Start() {
  // Room for those that join later.
  const size_t shards = std::min(workers_ + 16, kMostShards);
  std::vector<std::string> words = {
      e2e::kLockstep, "chief", e2e::kJob, "--dir", directory_, "--expected-workers", absl::StrCat(workers_)};
  for (const std::string& setting :
       {absl::StrCat("train.global_batch_size=", shards), absl::StrCat("train.logical_shards=", shards),
        absl::StrCat("cluster.workers=1:", shards), std::string("train.duration=100000000steps"),
        std::string("checkpoint.every=1000000steps")}) {
    words.insert(words.end(), {"--set", setting});
  }
  for (const std::string& setting : settings_) words.insert(words.end(), {"--set", setting});
  ++starts_;
  process_.emplace(words, directory_ + ".log");
  const absl::Time until = SteadyNow() + kStartLimit;
  while (true) {
    const auto status = Status();
    if (status.has_value() && status->term() == starts_) return;
    if (!process_->Running() || SteadyNow() >= until) throw std::runtime_error("the chief does not serve:\n" + Log());
    process_->Wait(kLookEvery);
  }
}

void LoadedChief::Kill() {
  process_->Signal(SIGKILL);
  process_->Wait(absl::InfiniteDuration());
}

Usage LoadedChief::Now() const {
  Usage usage;
  const pid_t pid = process_->pid();
  clockid_t clock{};
  timespec time{};
  if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &time) == 0) {
    usage.cpu_seconds = absl::ToDoubleSeconds(absl::DurationFromTimespec(time));
  }
  const std::string status = ReadAll(absl::StrCat("/proc/", pid, "/status"));
  usage.resident_kb = FieldOf(status, "VmRSS");
  usage.peak_kb = FieldOf(status, "VmHWM");
  usage.threads = FieldOf(status, "Threads");
  std::error_code ignored;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"), ignored)) {
    ++usage.descriptors;
  }
  return usage;
}

std::optional<proto::StatusReply> LoadedChief::Status() const {
  auto client = cli::AdminClient::ForDirectory(directory_);
  if (!client.ok()) return std::nullopt;
  auto reply = (*client)->Status(absl::Seconds(5));
  if (!reply.ok()) return std::nullopt;
  return *std::move(reply);
}

absl::StatusOr<absl::Duration> LoadedChief::TimeStatusCommand(std::string* output) const {
  const absl::Time begin = SteadyNow();
  const e2e::Ended ended = e2e::LocalJob::RunCommand({"status", "--dir", directory_, "--json"}, output);
  if (ended != e2e::Ended{}) return absl::UnavailableError(*output);
  return SteadyNow() - begin;
}

std::string LoadedChief::Log() const { return ReadAll(directory_ + ".log"); }

}  // namespace lockstep::load
