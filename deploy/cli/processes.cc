// `lockstep chief` and `lockstep worker`: one process of the job, started by hand.
#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/server/chief_main.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/launcher.h"
#include "deploy/cli/notice_options.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/slurm_task.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/session/inspect_data.h"
#include "worker/session/worker_main.h"

namespace lockstep::cli {
namespace {

// Exactly one of these says where the chief is.
constexpr const char* kChiefOptions[] = {"--chief", "--chief-file", "--job", "--etcd"};

const char* EnvironmentVariable(const char* name) { return std::getenv(name); }

// Takes options that the command line does not have from the launcher.
absl::Status TakeFromLauncher(const CLI::App& command, worker::WorkerOptions& options) {
  const auto given = [&command](const char* option) { return command.count(option) > 0; };
  const bool has_chief = std::any_of(std::begin(kChiefOptions), std::end(kChiefOptions), given);
  if (has_chief && given("--name") && given("--local-rank")) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(std::optional<LaunchedTask> task, ThisLaunchedTask(EnvironmentVariable));
  if (const auto slurm = ThisSlurmTask(EnvironmentVariable); slurm.has_value() && !task.has_value()) {
    task = LaunchedTask{.by = "Slurm", .name = slurm->name, .local_rank = slurm->local_rank};
  }
  if (!task.has_value()) return absl::OkStatus();
  std::vector<std::string> taken;
  if (!task->chief.empty() && !has_chief) {
    options.chief = task->chief;
    taken.push_back(absl::StrCat("--chief ", task->chief));
  }
  if (!given("--name")) {
    options.name = task->name;
    taken.push_back(absl::StrCat("--name ", task->name));
  }
  if (task->local_rank.has_value() && !given("--local-rank")) {
    options.local_rank = *task->local_rank;
    taken.push_back(absl::StrCat("--local-rank ", *task->local_rank));
  }
  if (!taken.empty()) {
    options.assumed = absl::StrCat("by ", task->by, " in the environment: ", absl::StrJoin(taken, " "));
  }
  return absl::OkStatus();
}

absl::Status ReadDataRoots(const std::vector<std::string>& texts, worker::WorkerOptions& options) {
  for (const std::string& text : texts) {
    LS_ASSIGN_OR_RETURN(worker::DataRoot root, worker::ParseDataRoot(text));
    options.data_roots.push_back(std::move(root));
  }
  return absl::OkStatus();
}

}  // namespace

void AddChief(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("chief", "Run the chief of a job; workers connect to it");
  auto options = std::make_shared<chief::ChiefOptions>();
  command->add_option("job", options->job_path, "The job file")->required();
  command->add_option("--set", options->overrides, "Override a setting: key=value")->allow_extra_args(false);
  AddPlace(*command, "--dir", options->directory, "The job's directory (default: checkpoint.dir of the job)");
  command->add_option("--listen", options->listen, "Where workers reach the chief, HOST:PORT; port 0: any")
      ->capture_default_str();
  command
      ->add_option("--expected-workers", options->expected_workers,
                   "Wait for this many workers before the first step, at most 30 s (default: until none came for 3 s)")
      ->check(CLI::Range(0, 4096));
  command->add_option("--address-file", options->address_file,
                      "Also write the address here, for workers that are to follow this chief and no other");
  command->add_flag("--standby", options->standby,
                    "Wait until the job's chief is gone or silent, then take the job over");
  command->add_flag("--stop-on-sigterm", options->stops_on_sigterm,
                    "SIGTERM ends the whole job, as Ctrl-C does; else workers wait for the next chief");
  command->add_option("--etcd", options->etcd,
                      "http(s)://HOST:PORT[,...]/PREFIX in etcd: a standby with it follows a chief with it within 5 s");
  command->add_option("--record", options->record_directory, "Record every decision in this directory");
  command->add_option("--cause-fd", options->cause_fd)->group("");
  options->inspect_data = worker::InspectData;
  options->evaluate_node = device::EvaluateNode;
  command->callback([options, &exit_code] { exit_code = chief::ChiefMain(*options); });
}

void AddWorker(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("worker", "Run one worker; the job comes from the chief");
  auto options = std::make_shared<worker::WorkerOptions>();
  CLI::Option* chief = command->add_option("--chief", options->chief, "The chief's address, HOST:PORT");
  CLI::Option* file =
      command->add_option("--chief-file", options->chief_file, "A file with the address: DIR/chief/address");
  chief->excludes(file);
  auto job = std::make_shared<std::string>();
  command
      ->add_option("--job", *job,
                   "The job's directory or s3://BUCKET/PREFIX, where the chief's address and the token are found")
      ->excludes(chief)
      ->excludes(file);
  command
      ->add_option("--etcd", options->chief_etcd,
                   "Where etcd knows of the job, as its chief was told; the chief's address is found there")
      ->excludes(chief)
      ->excludes(file)
      ->excludes("--job");
  command->add_option("--token-file", options->token_file,
                      "The job's token, DIR/chief/token (default: the variable LOCKSTEP_TOKEN)");
  command->add_option("--name", options->name,
                      "Preferred name (default: the chief chooses; of a Slurm task NODE-PROCID)");
  command->add_option("--peer-host", options->peer_host,
                      "The address under which the other workers reach this one (default: the one that its packets to "
                      "the chief leave from)");
  command
      ->add_option("--device", options->device,
                   "Which of its machine's devices it computes on: auto, cpu, cuda or cuda:N. The job decides the kind")
      ->capture_default_str();
  command
      ->add_option("--local-rank", options->local_rank,
                   "Which worker of its machine it is (of a Slurm task: SLURM_LOCALID): workers without a number in "
                   "--device take GPUs in turn")
      ->capture_default_str()
      ->check(CLI::Range(0, 4095));
  auto data_roots = std::make_shared<std::vector<std::string>>();
  command
      ->add_option("--data-root", *data_roots,
                   "FROM=TO: what the job's data has below the folder FROM lies below TO on this machine")
      ->allow_extra_args(false);
  command->add_option("--http", options->http,
                      "Serve /healthz, /readyz and /metrics here, HOST:PORT (default: nowhere)");
  AddNoticeOptions(*command, options->notices);
  command->add_flag("--notice-eof", options->notices.input,
                    "Leave as on SIGTERM when the standard input ends, as that of an ssh connection does");
  command->add_option("--connect-timeout", options->connect_timeout_s, "Seconds to try to reach the chief at first")
      ->capture_default_str();
  command->add_option("--record", options->record_directory, "Record every decision in this directory");
  command->add_option("--cause-fd", options->cause_fd)->group("");
  command->callback([command, options, job, data_roots, &exit_code] {
    absl::Status read = ReadDataRoots(*data_roots, *options);
    read.Update(TakeFromLauncher(*command, *options));
    if (!read.ok()) {
      exit_code = Fail(read, kExitUsage);
      return;
    }
    if (!job->empty()) {
      options->chief_file = JoinPath(*job, layout::kAddress);
      if (options->token_file.empty()) options->token_file = JoinPath(*job, layout::kToken);
    }
    if (options->chief.empty() && options->chief_file.empty() && options->chief_etcd.empty()) {
      exit_code =
          Fail(absl::InvalidArgumentError("worker: give --chief HOST:PORT, --job DIR, --etcd URL or --chief-file FILE"),
               kExitUsage);
      return;
    }
    exit_code = worker::WorkerMain(*options);
  });
}

}  // namespace lockstep::cli
