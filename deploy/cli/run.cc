// `lockstep run`: a chief and N workers as real processes on this machine, kept alive by the supervisor.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "chief/server/address_file.h"
#include "chief/server/job_directory.h"
#include "common/checkpoint_format/naming.h"
#include "common/clock/clock.h"
#include "common/digest/random_secret.h"
#include "common/job/job.h"
#include "common/job/log_settings.h"
#include "common/job/units.h"
#include "common/job_place/job_place.h"
#include "common/log/log.h"
#include "common/log/output.h"
#include "common/net/answer_limit.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/admin_client.h"
#include "deploy/cli/check_job.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/notice_options.h"
#include "deploy/supervisor/supervisor.h"
#include "worker/device/device_choice.h"

namespace lockstep::cli {
namespace {

// Of questions that are asked again and again; a report is made once.
constexpr absl::Duration kLeastAskLimit = absl::Milliseconds(200);
constexpr absl::Duration kMostAskLimit = absl::Seconds(2);
constexpr absl::Duration kStuckAfterGrace = absl::Seconds(5);
constexpr int kTailLines = 15;
constexpr std::streamoff kTailBytes = 64 << 10;  // of a log of any length
constexpr char kPeerHost[] = "127.0.0.1";        // also where Slurm would say another one
constexpr char kAddressPrefix[] = "run-";
constexpr char kAddressSuffix[] = ".address";
constexpr std::chrono::hours kOldAddress(24);

struct RunOptions {
  std::string job_path;
  std::vector<std::string> overrides;
  std::string directory;
  std::string logs;
  int workers = 0;
  std::string kill_every;
  uint64_t kill_seed = 0;
  std::string device = "auto";
  worker::NoticeOptions notices;
  std::string record_directory;
};

std::string OwnPath() {
  char path[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", path, sizeof(path));
  return n > 0 ? std::string(path, static_cast<size_t>(n)) : std::string("lockstep");
}

absl::StatusOr<supervisor::KillSchedule> ParseKills(const RunOptions& options) {
  supervisor::KillSchedule kills;
  kills.seed = options.kill_seed;
  if (options.kill_every.empty()) return kills;
  absl::string_view text = options.kill_every;
  int64_t steps = 0;
  absl::Duration period;
  if (absl::ConsumeSuffix(&text, "steps")) {
    if (absl::SimpleAtoi(text, &steps) && steps > 0) kills.steps = steps;
  } else if (absl::ParseDuration(text, &period) && period > absl::ZeroDuration()) {
    kills.period = period;
  }
  if (kills.steps.has_value() || kills.period.has_value()) return kills;
  return absl::InvalidArgumentError(absl::StrCat("--kill-worker-every '", options.kill_every,
                                                 "' is neither a time such as 5s nor steps such as 40steps"));
}

// Commands, logs and questions to the chief for the processes of one run.
class LocalRun {
 public:
  // `folder`: where logs and the address of this run's chief go; the job's directory, unless that is in a bucket.
  LocalRun(RunOptions options, std::string directory, std::string folder, int workers)
      : options_(std::move(options)),
        directory_(std::move(directory)),
        folder_(std::move(folder)),
        workers_(workers),
        self_(OwnPath()) {
    id_ = RandomSecretHex(8).value_or(absl::StrCat(getpid()));
    for (int i = 0; i < workers_; ++i) {
      std::error_code none;
      const auto size = std::filesystem::file_size(LogPath({.chief = false, .index = i}), none);
      earlier_log_bytes_.push_back(none ? 0 : static_cast<std::streamoff>(size));
    }
  }
  ~LocalRun() { chief::RemoveAddressFile(AddressPath()); }
  LocalRun(const LocalRun&) = delete;
  LocalRun& operator=(const LocalRun&) = delete;

  std::vector<std::string> Command(const supervisor::Role& role) const {
    std::vector<std::string> words = {self_};
    if (role.chief) {
      words.insert(words.end(), {"chief", options_.job_path, "--dir", directory_, "--expected-workers",
                                 absl::StrCat(workers_), "--address-file", AddressPath()});
      for (const std::string& set : options_.overrides) words.insert(words.end(), {"--set", set});
    } else {
      words.insert(words.end(),
                   {"worker", "--chief-file", AddressPath(), "--token-file",
                    absl::StrCat(directory_, "/", layout::kToken), "--name", supervisor::RoleName(role), "--peer-host",
                    kPeerHost, "--device", options_.device, "--local-rank", absl::StrCat(role.index)});
      const std::vector<std::string> notices = NoticeWords(options_.notices);
      words.insert(words.end(), notices.begin(), notices.end());
    }
    words.insert(words.end(), {"--cause-fd", absl::StrCat(supervisor::kCauseFd)});
    if (!options_.record_directory.empty()) words.insert(words.end(), {"--record", options_.record_directory});
    return words;
  }

  std::string LogPath(const supervisor::Role& role) const {
    if (role.chief) return "";
    return absl::StrCat(folder_, "/", layout::kLogs, "/", supervisor::RoleName(role), ".log");
  }

  std::optional<int64_t> ReadStep() {
    auto status = AskChief();
    if (!status.has_value()) return std::nullopt;
    return static_cast<int64_t>(status->step());
  }

  // Why this worker is kept away: a notice that stands sends it away again, and `lockstep drain` names it or this host.
  std::string WhyHeld(const supervisor::Role& role) {
    std::error_code none;
    if (!options_.notices.file.empty() && std::filesystem::exists(options_.notices.file, none)) {
      return absl::StrCat("was sent away: it is started again when ", options_.notices.file, " is removed");
    }
    const auto status = AskChief();
    if (!status.has_value()) return "";
    char host[256] = {};
    gethostname(host, sizeof host - 1);
    const bool drained = std::any_of(status->drained().begin(), status->drained().end(), [&](const auto& target) {
      return target == supervisor::RoleName(role) || target == host;
    });
    return drained ? "is drained: it is started again when `lockstep drain --undo` lets it come back" : "";
  }

  void ReportExit(const supervisor::ReportExit& exited) {
    auto client = Connect();
    if (!client.ok()) return;
    proto::ExitReport report;
    report.set_name(supervisor::RoleName(exited.role));
    report.set_signal(exited.how.signal);
    report.set_exit_code(exited.how.code);
    report.set_last(exited.last);
    report.set_cause(exited.cause);
    (*client)->ReportExit(report, kMostAskLimit).IgnoreError();
  }

  // The end of what this run added to a worker's log, for a run that failed.
  void PrintTail(const supervisor::Role& role) const {
    std::ifstream in(LogPath(role), std::ios::ate);
    const std::streamoff size = in.tellg();
    in.seekg(std::max(earlier_log_bytes_[static_cast<size_t>(role.index)], size - kTailBytes));
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    if (lines.empty()) return;
    if (lines.size() > kTailLines) lines.erase(lines.begin(), lines.end() - kTailLines);
    LogLine(LogLevel::info, absl::StrCat("the last lines of ", LogPath(role), ":\n", absl::StrJoin(lines, "\n")));
  }

 private:
  // Where this run's chief says its address: another run's chief may live in the directory, and this one's be refused.
  std::string AddressFile() const { return absl::StrCat(layout::kLogs, "/", kAddressPrefix, id_, kAddressSuffix); }
  std::string AddressPath() const { return absl::StrCat(folder_, "/", AddressFile()); }
  absl::StatusOr<std::unique_ptr<AdminClient>> Connect() const {
    return AdminClient::ForDirectory(directory_, IsInBucket(directory_) ? AddressPath() : AddressFile());
  }

  // A connection is kept while it answers: a chief that starts again may listen elsewhere.
  std::optional<proto::StatusReply> AskChief() {
    if (client_ == nullptr) {
      auto client = Connect();
      if (!client.ok()) return std::nullopt;
      client_ = *std::move(client);
    }
    const absl::Time begin = SteadyNow();
    auto reply = client_->Status(ask_limit_.limit());
    if (reply.ok()) {
      ask_limit_.Answered(SteadyNow() - begin);
      return *std::move(reply);
    }
    ask_limit_.Missed();
    client_ = nullptr;
    return std::nullopt;
  }

  const RunOptions options_;
  const std::string directory_;
  const std::string folder_;
  const int workers_;
  const std::string self_;
  std::string id_;                                 // of this run: pids are equal in two containers
  std::vector<std::streamoff> earlier_log_bytes_;  // per worker: of runs before this one
  std::unique_ptr<AdminClient> client_;
  AnswerLimit ask_limit_{kLeastAskLimit, kMostAskLimit};
};

// Behind everything else the cause, once. A defect or a process that gave no reason shows in the logs of the workers.
void SayWhy(const LocalRun& run, int workers, int code, const std::string& cause) {
  if (code == supervisor::kSecondStopExit) {
    return WriteLastLine(
        absl::AbortedError("ended by a second stop signal: steps after the newest checkpoint are lost; "
                           "the same command goes on from that checkpoint"),
        code);
  }
  if (cause.empty() || code == kExitBug) {
    for (int i = 0; i < workers; ++i) run.PrintTail({.chief = false, .index = i});
  }
  WriteLastLine(
      absl::UnknownError(cause.empty() ? "a process ended without saying why; the lines above may tell" : cause), code);
}

// The last words of a run that does not start, or that cannot go on: in the job's format, behind what was said before.
int End(const absl::Status& status, int exit_code) {
  WriteLastLine(status, exit_code);
  return exit_code;
}

// Removes what runs that were killed left behind. A chief that lives writes its file again.
void RemoveOldAddresses(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator entry(absl::StrCat(directory, "/", layout::kLogs), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, kAddressPrefix) || !absl::StrContains(name, kAddressSuffix)) continue;
    std::error_code none;
    const auto written = fs::last_write_time(entry->path(), none);
    if (!none && fs::file_time_type::clock::now() - written > kOldAddress) fs::remove(entry->path(), none);
  }
}

absl::Status MakeLogFolder(const std::string& directory) {
  const std::string folder = absl::StrCat(directory, "/", layout::kLogs);
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("cannot make the folder ", folder, ": ", error.message(), "; choose another with --dir"));
}

// For the logs of a job in a bucket: where the directory of the job would be by default.
std::string FolderBeside(const std::string& job_path, const JobSpec& job) {
  return (std::filesystem::path(job_path).parent_path() / "runs" / job.name()).string();
}

int Run(const RunOptions& options) {
  InitLog({.role = "run"});
  const JobReading reading = ReadJob(options.job_path, options.overrides);
  const JobSpec& job = reading.spec;
  ApplyLogSettings(job);  // before the first line
  absl::StatusOr<supervisor::KillSchedule> kills = ParseKills(options);
  if (!kills.ok()) return End(kills.status(), kExitUsage);
  const absl::StatusOr<device::WorkerDevice> device = device::ParseWorkerDevice(options.device);
  if (!device.ok()) return End(device.status(), kExitUsage);
  const absl::Status notices = worker::PlanNotices(options.notices).status();
  if (!notices.ok()) return End(notices, kExitUsage);
  if (!reading.mistakes.empty()) {
    ExitCode exit_code = kExitBadJob;
    const absl::Status refused = RefuseJob(reading, exit_code);
    return End(refused, exit_code);
  }
  const std::string directory = options.directory.empty() ? job.checkpoint().dir() : options.directory;
  const int workers = options.workers > 0 ? options.workers : static_cast<int>(job.cluster().workers().min());
  absl::Status usable = chief::CheckWritable(directory);
  if (!options.logs.empty() && !IsInBucket(directory)) {
    return End(absl::InvalidArgumentError("--logs goes with a job in a bucket; this one has its logs in its directory"),
               kExitUsage);
  }
  const std::string beside = options.logs.empty() ? FolderBeside(options.job_path, job) : options.logs;
  const std::string folder = IsInBucket(directory) ? beside : directory;
  if (usable.ok()) usable = MakeLogFolder(folder);
  if (!usable.ok()) return End(usable, kExitStorage);
  RemoveOldAddresses(folder);

  LocalRun run(options, directory, folder, workers);
  supervisor::SupervisorOptions supervised;
  supervised.policy.workers = workers;
  supervised.policy.kills = *kills;
  // Workers end by themselves within their grace; what is left then is stuck.
  supervised.policy.grace = job::ToDuration(job.failure().grace_period()) + kStuckAfterGrace;
  supervised.command = [&](const supervisor::Role& role) { return run.Command(role); };
  supervised.report_exit = [&](const supervisor::ReportExit& exited) { run.ReportExit(exited); };
  supervised.log_path = [&](const supervisor::Role& role) { return run.LogPath(role); };
  supervised.read_step = [&] { return run.ReadStep(); };
  supervised.why_held = [&](const supervisor::Role& role) { return run.WhyHeld(role); };
  supervised.say = [](const std::string& line) { LS_LOG(info, line); };
  // Chiefs of jobs that log JSON draw no live line, and a line of JSON has nothing before it.
  const bool live_line = CurrentLogFormat() == LogFormat::text && StyleOf(STDERR_FILENO).live;
  if (live_line) ProcessOutput(STDERR_FILENO).ShareTerminal();
  supervisor::Supervisor supervisor(std::move(supervised));
  absl::StatusOr<int> code = supervisor.Run();
  if (!code.ok()) return End(code.status(), StorageExitCode(code.status()));
  if (!options.kill_every.empty()) {
    LogEventLine({.name = "kills",
                  .text = absl::StrCat("killed ", supervisor.kills(), " workers on purpose"),
                  .fields = {{"kills", supervisor.kills()}}});
  }
  if (*code != kExitDone && *code != kExitPreempted) SayWhy(run, workers, *code, supervisor.Cause());
  FlushLog();
  return *code;
}

}  // namespace

void AddRun(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run a whole job on this machine: a chief and workers, kept alive");
  auto options = std::make_shared<RunOptions>();
  command->add_option("job", options->job_path, "The job file")->required();
  command->add_option("--workers", options->workers, "Workers to start (default: the fewest the job asks for)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--dir", options->directory,
                      "The job's directory or s3://BUCKET/PREFIX (default: checkpoint.dir of the job)");
  command->add_option("--logs", options->logs,
                      "Of a job in a bucket: a directory for logs/ (default: runs/NAME beside the job file)");
  command->add_option("--set", options->overrides, "Override a setting: key=value")->allow_extra_args(false);
  command->add_option("--kill-worker-every", options->kill_every,
                      "SIGKILL a random worker on this period: 5s, 40steps. To watch that nothing changes");
  command->add_option("--kill-seed", options->kill_seed, "Which workers are killed")->capture_default_str();
  command
      ->add_option("--device", options->device,
                   "What the workers compute on: auto, cpu, cuda (the machine's GPUs in turn) or cuda:N (all on one)")
      ->capture_default_str();
  AddNoticeOptions(*command, options->notices);
  command->add_option("--record", options->record_directory,
                      "Record every decision of every process in this directory");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace lockstep::cli
