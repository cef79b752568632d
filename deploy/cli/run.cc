// `lockstep run` and `lockstep hosts`: a chief on this machine and N workers, here or on other hosts, kept alive by the
// supervisor.
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "chief/server/job_directory.h"
#include "common/checkpoint_format/naming.h"
#include "common/job/job.h"
#include "common/job/log_settings.h"
#include "common/job/units.h"
#include "common/job_place/job_place.h"
#include "common/log/log.h"
#include "common/log/output.h"
#include "common/net/listen.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/check_job.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/hosts.h"
#include "deploy/cli/local_run.h"
#include "deploy/cli/notice_options.h"
#include "deploy/cli/place_option.h"
#include "deploy/supervisor/supervisor.h"
#include "worker/device/choice/device_choice.h"
#include "worker/session/data_roots.h"
#include "worker/session/peer_host.h"

namespace lockstep::cli {
namespace {

constexpr absl::Duration kStuckAfterGrace = absl::Seconds(5);
constexpr int kSshPort = 22;

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
  InitLog({.part = "run"});
  const JobReading reading = ReadJob(options.job_path, options.overrides);
  const JobSpec& job = reading.spec;
  ApplyLogSettings(job);  // before the first line
  ExportLogStyle();
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

namespace {

// Those that `run` and `hosts` have in common.
void AddOptions(CLI::App* command, const std::shared_ptr<RunOptions>& options) {
  command->add_option("job", options->job_path, "The job file")->required();
  AddPlace(*command, "--dir", options->directory,
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
}

// Where the chief listens for workers of other hosts, when nobody says it: the address that the way to the first one
// begins at, and a port that is free. It stays the same when the chief starts again.
absl::StatusOr<std::string> ListenTowards(absl::string_view host) {
  host = host.substr(host.rfind('@') + 1);  // without the user
  const absl::StatusOr<std::string> own = worker::AddressTowards(absl::StrCat(host, ":", kSshPort));
  if (!own.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("which address of this machine do the hosts reach? The way to ",
                                                   host, " does not tell; give --listen HOST:PORT"));
  }
  LS_ASSIGN_OR_RETURN(const Listeners listeners, ListenAt({*own, 0}));
  return absl::StrCat(*own, ":", listeners.port);
}

int RunOnHosts(RunOptions options, const std::string& hosts) {
  absl::StatusOr<std::vector<WorkerHost>> read = ReadHosts(hosts);
  if (!read.ok()) return Fail(read.status(), kExitUsage);
  options.hosts = *std::move(read);
  for (const std::string& root : options.data_roots) {
    if (const absl::Status status = worker::ParseDataRoot(root).status(); !status.ok()) return Fail(status, kExitUsage);
  }
  options.workers = static_cast<int>(options.hosts.size());
  if (options.listen.empty()) {
    absl::StatusOr<std::string> listen = ListenTowards(options.hosts[0].host);
    if (!listen.ok()) return Fail(listen.status(), kExitUsage);
    options.listen = *std::move(listen);
  }
  return Run(options);
}

}  // namespace

void AddRun(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("run", "Run a whole job on this machine: a chief and workers, kept alive");
  auto options = std::make_shared<RunOptions>();
  AddOptions(command, options);
  command->add_option("--workers", options->workers, "Workers to start (default: the fewest the job asks for)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--record", options->record_directory,
                      "Record every decision of every process in this directory");
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

void AddHosts(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("hosts", "Run a job with its chief here and its workers on other hosts, by ssh");
  auto options = std::make_shared<RunOptions>();
  auto hosts = std::make_shared<std::string>();
  command->add_option("hosts", *hosts, "a,b:2 (b has two workers), or a file with lines HOST or HOST slots=N")
      ->required();
  AddOptions(command, options);
  command->add_option("--listen", options->listen,
                      "Where the hosts reach the chief, HOST:PORT (default: this machine's address towards the first)");
  command
      ->add_option("--data-root", options->data_roots,
                   "FROM=TO: what the job's data has below the folder FROM lies below TO on those hosts")
      ->allow_extra_args(false);
  command->add_option("--program", options->program, "The program on those hosts")->capture_default_str();
  command->add_option("--ssh", options->ssh, "The command that reaches a host")->capture_default_str();
  command->callback([options, hosts, &exit_code] { exit_code = RunOnHosts(*options, *hosts); });
}

}  // namespace lockstep::cli
