// `lockstep slurm submit|join`: a job, or more workers for one, by the batch script that is part of this program.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/job/job.h"
#include "common/job_place/job_place.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/descriptor.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/own_program.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/slurm_submission.h"
#include "deploy/slurm/script.h"

namespace lockstep::cli {
namespace {

constexpr char kArrayTask[] = "%a";  // in a directory or a setting: the batch script puts the number of the task there
constexpr char kScriptName[] = "lockstep.sbatch";

struct SlurmOptions {
  SlurmSubmission submission;
  bool print = false;
};

std::string Absolute(const std::string& path) {
  if (path.empty() || IsInBucket(path)) return path;
  return std::filesystem::absolute(path).lexically_normal().string();
}

// The batch script as a file that a child of this process finds under the path.
struct ScriptFile {
  Descriptor file;
  std::string path;
};

absl::StatusOr<ScriptFile> MakeScriptFile() {
  ScriptFile script{.file = Descriptor(memfd_create(kScriptName, 0)), .path = ""};
  if (!script.file.is_open()) return absl::ErrnoToStatus(errno, "cannot make a file in memory for the batch script");
  absl::string_view rest = slurm::BatchScript();
  while (!rest.empty()) {
    const ssize_t n = write(script.file.get(), rest.data(), rest.size());
    if (n < 0) return absl::ErrnoToStatus(errno, "cannot write the batch script into memory");
    rest.remove_prefix(static_cast<size_t>(n));
  }
  script.path = absl::StrCat("/proc/self/fd/", script.file.get());
  return script;
}

// Runs the command and returns what it prints; its errors go where this program's go. FailedPrecondition when there is
// no such program or it fails. Blocks until it has ended.
absl::StatusOr<std::string> OutputOf(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  const Descriptor reads(ends[0]);
  Descriptor writes(ends[1]);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writes.get(), STDOUT_FILENO);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot run ", command[0], ": ", strerror(failed),
                     ". Submit from a machine where Slurm's commands are installed, or "
                     "take the script to one: --print"));
  }
  writes.Close();
  std::string output;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(reads.get(), buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno != EINTR) break;
    if (n > 0) output.append(buffer, static_cast<size_t>(n));
  }
  int how = 0;
  while (waitpid(child, &how, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return output;
  return absl::FailedPreconditionError(absl::StrCat(command[0], " refused the job; the lines above say why"));
}

// Reads the job and completes what the user left open. Mistakes of its file are told now, not when the job has waited
// for its nodes.
absl::Status Complete(SlurmSubmission& submission) {
  if (submission.program.empty()) submission.program = OwnProgram();
  if (!submission.job_path.empty()) {
    std::vector<std::string> overrides = submission.overrides;
    for (std::string& set : overrides) set = absl::StrReplaceAll(set, {{kArrayTask, "0"}});
    LS_ASSIGN_OR_RETURN(const JobSpec job, LoadJob(submission.job_path, overrides));
    if (submission.directory.empty()) submission.directory = job.checkpoint().dir();
    submission.name = job.name();
    submission.job_path = Absolute(submission.job_path);
  }
  submission.directory = Absolute(submission.directory);
  return absl::OkStatus();
}

void SayWhatFollows(const SlurmSubmission& submission, const std::string& job) {
  const std::string& dir = submission.directory;
  const bool one = submission.workers == 1;
  const char* const verb = submission.job_path.empty() ? (one ? " worker joins in " : " workers join in ")
                                                       : (one ? " worker trains in " : " workers train in ");
  std::cout << "job " << job << ": " << submission.workers << verb << dir << "\n";
  const auto line = [](const char* what, const std::vector<std::string>& command) {
    std::cout << "  " << what << ShellLine(command) << "\n";
  };
  line("in the queue   ", {"squeue", "--jobs", job});
  line("how it goes    ", {"lockstep", "status", "--dir", dir, "--watch"});
  if (!submission.job_path.empty()) {
    line("more workers   ", {"lockstep", "slurm", "join", dir, "--workers", "1"});
    line("save and end   ", {"lockstep", "stop", "--dir", dir});
  }
  line(submission.job_path.empty() ? "take them back " : "end at once    ", {"scancel", job});
}

int Submit(SlurmOptions options) {
  SlurmSubmission& submission = options.submission;
  if (!submission.options.empty() && !absl::StartsWith(submission.options.front(), "-")) {
    return Fail(absl::InvalidArgumentError(absl::StrCat("'", submission.options.front(),
                                                        "' is no option of sbatch; such options come last, behind --")),
                kExitUsage);
  }
  const absl::Status complete = Complete(submission);
  if (!complete.ok()) return Fail(complete, kExitBadJob);
  if (options.print) {
    std::cout << slurm::BatchScript();
    std::cerr << ShellLine(SbatchCommand(submission, kScriptName)) << "\n";
    return kExitDone;
  }
  const absl::StatusOr<ScriptFile> script = MakeScriptFile();
  if (!script.ok()) return Fail(script.status(), kExitBug);
  const absl::StatusOr<std::string> answer = OutputOf(SbatchCommand(submission, script->path));
  if (!answer.ok()) return Fail(answer.status(), kExitBadJob);
  const absl::StatusOr<std::string> job = SubmittedJob(*answer);
  if (!job.ok()) return Fail(job.status(), kExitBadJob);
  SayWhatFollows(submission, *job);
  return kExitDone;
}

// What both commands take, behind their own.
void AddCommon(CLI::App& command, const std::shared_ptr<SlurmOptions>& options, int& exit_code) {
  SlurmSubmission& submission = options->submission;
  command
      .add_option("--workers", submission.workers, "Workers: one for each node, with --gpus-per-worker for each GPU")
      ->required()
      ->check(CLI::Range(1, 4096));
  command.add_option("--gpus-per-worker", submission.gpus_per_worker, "A worker computes on one GPU, or on none")
      ->capture_default_str()
      ->check(CLI::Range(0, 1));
  command.add_option("--partition", submission.partition, "Where it runs (default: Slurm's)");
  command.add_option("--time", submission.time,
                     "For how long it may run before it is queued again, as 30 or 2:00:00 (default: the partition's)");
  command.add_option("--lockstep", submission.program,
                     "Where this program is on the nodes (default: where it is on this machine)");
  command.add_flag("--print", options->print, "Print the batch script, and how to submit it, in place of submitting");
  command.add_option("sbatch", submission.options, "Further options of sbatch, behind --; they win over those above");
  command.callback([options, &exit_code] { exit_code = Submit(*options); });
}

}  // namespace

void AddSlurm(CLI::App& app, int& exit_code) {
  CLI::App* const slurm = app.add_subcommand("slurm", "Train on the nodes of a Slurm cluster");
  slurm->require_subcommand(1);
  CLI::App* const submit = slurm->add_subcommand("submit", "Submit a job: a chief, and workers that may come and go");
  auto job = std::make_shared<SlurmOptions>();
  submit->add_option("job", job->submission.job_path, "The job file, on a file system that the nodes share")
      ->required();
  AddPlace(*submit, "--dir", job->submission.directory,
           "The job's directory, shared by the nodes, or s3://BUCKET/PREFIX (default: checkpoint.dir of the "
           "job). %a: the task's number in an array, also in --set");
  submit->add_option("--set", job->submission.overrides, "Override a setting: key=value")->allow_extra_args(false);
  AddCommon(*submit, job, exit_code);

  CLI::App* const join = slurm->add_subcommand("join", "Lend a running job more workers, by a Slurm job of their own");
  auto workers = std::make_shared<SlurmOptions>();
  workers->submission.name = "lockstep-join";
  AddPlace(*join, "dir", workers->submission.directory, "The job's directory, or s3://BUCKET/PREFIX")->required();
  AddCommon(*join, workers, exit_code);
}

}  // namespace lockstep::cli
