// `lockstep chief` and `lockstep worker`: one process of the job, started by hand.
#include <cstdlib>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "chief/server/chief_main.h"
#include "common/checkpoint_format/naming.h"
#include "common/net/listen.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/notice_options.h"
#include "deploy/cli/slurm_task.h"
#include "worker/device/evaluate_node.h"
#include "worker/session/inspect_data.h"
#include "worker/session/worker_main.h"

namespace lockstep::cli {
namespace {

// In a task that srun started, what was not given on the command line is what Slurm says.
void TakeFromSlurm(const CLI::App& command, worker::WorkerOptions& options) {
  const auto task = ThisSlurmTask([](const char* name) -> const char* { return std::getenv(name); });
  if (!task.has_value()) return;
  const auto open = [&command](const char* option) { return command.count(option) == 0; };
  if (open("--name")) options.name = task->name;
  if (open("--local-rank")) options.local_rank = task->local_rank;
  // Where the node's name is none of an address, the default stays.
  if (open("--peer-host") && CheckListen(absl::StrCat(task->node, ":0")).ok()) options.peer_host = task->node;
}

}  // namespace

void AddChief(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("chief", "Run the chief of a job; workers connect to it");
  auto options = std::make_shared<chief::ChiefOptions>();
  command->add_option("job", options->job_path, "The job file")->required();
  command->add_option("--set", options->overrides, "Override a setting: key=value")->allow_extra_args(false);
  command->add_option("--dir", options->directory, "The job's directory (default: checkpoint.dir of the job)");
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
  command
      ->add_option("--peer-host", options->peer_host,
                   "The address under which the other workers reach this one (of a Slurm task: its node's name)")
      ->capture_default_str();
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
  AddNoticeOptions(*command, options->notices);
  command->add_option("--connect-timeout", options->connect_timeout_s, "Seconds to try to reach the chief at first")
      ->capture_default_str();
  command->add_option("--record", options->record_directory, "Record every decision in this directory");
  command->add_option("--cause-fd", options->cause_fd)->group("");
  command->callback([command, options, job, &exit_code] {
    TakeFromSlurm(*command, *options);
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
