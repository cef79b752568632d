// `lockstep profile`: where the time of a job's training steps goes, measured in this process, or accounted for on a
// GPU that is not here.
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "chief/server/job_setup.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/local/local_storage.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/own_program.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/choice/device_choice.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/device/host/environment.h"
#include "worker/profile/chrome_trace.h"
#include "worker/profile/profile_report.h"
#include "worker/profile/profiler.h"
#include "worker/session/inspect_data.h"
#include "worker/session/worker_main.h"
#include "worker/step/replica.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;

// Caches, branch predictors and the data's pages are those of a running job after this many.
constexpr int64_t kWarmUpSteps = 3;

struct ProfileOptions {
  std::string job_path;
  std::optional<std::string> model_of;  // a GPU; none: steps are measured here
  int workers = 1;                      // of the account
  std::vector<std::string> overrides;
  std::string output;
  std::string device = "auto";
  int64_t steps = 10;
};

// Where the trace will go, looked at before anything takes time: a file that is there is replaced only if it is a
// trace.
class TraceFile {
 public:
  absl::Status Open(const std::string& path) {
    path_ = path;
    const fs::path file(path);
    if (!file.has_filename() || fs::is_directory(file)) {
      return absl::InvalidArgumentError(absl::StrCat("'", path, "' is no name of a file; give one with -o"));
    }
    LS_ASSIGN_OR_RETURN(storage_, LocalStorage::Open(file.has_parent_path() ? file.parent_path().string() : "."));
    name_ = file.filename().string();
    replaces_ = fs::exists(file);
    if (!replaces_) return absl::OkStatus();
    std::string opening(worker::kTraceOpening.size(), '\0');
    std::ifstream(path, std::ios::binary).read(opening.data(), static_cast<std::streamsize>(opening.size()));
    if (opening == worker::kTraceOpening) return absl::OkStatus();
    return absl::AlreadyExistsError(
        absl::StrCat("'", path, "' exists and is no trace of `lockstep profile`; give another name with -o"));
  }

  absl::Status Write(const std::string& text) {
    LS_RETURN_IF_ERROR(ReplaceFile(*storage_, absl::StrCat(name_, ".partial"), name_, text, Access::kShared));
    std::cout << (replaces_ ? "replaced " : "wrote ") << path_ << "; open it in https://ui.perfetto.dev or "
              << "chrome://tracing\n";
    return absl::OkStatus();
  }

 private:
  std::string path_;
  std::string name_;
  bool replaces_ = false;
  std::unique_ptr<LocalStorage> storage_;
};

absl::Status LoadInitialState(const chief::JobSetup& setup, worker::Replica& replica) {
  int exit_code = kExitDone;
  LS_ASSIGN_OR_RETURN(const chief::InitialState initial, chief::InitialStateOf(setup, exit_code));
  LS_RETURN_IF_ERROR(replica.state().host().Load(initial.tensors));
  LS_RETURN_IF_ERROR(replica.state().Store());
  replica.runner().StateReplaced();
  return absl::OkStatus();
}

// Trains `first` to `last`, the way one worker that is alone does.
absl::Status Train(worker::Replica& replica, const worker::Profiler& profiler, int64_t first, int64_t last,
                   std::vector<worker::TracedStep>* traced) {
  const auto communicators = worker::MakeLoopback({1, 1}, 1);
  for (int64_t step = first; step <= last; ++step) {
    const int64_t begin = profiler.now();
    LS_ASSIGN_OR_RETURN(const worker::StepResult result, replica.runner().RunStep(*communicators[0], step, {}));
    traced->push_back({step, begin, profiler.now()});
    if (!result.applied) {
      return absl::InvalidArgumentError(absl::StrCat(result.message, "; the job's `train.on_nan` says stop"));
    }
  }
  return absl::OkStatus();
}

void PrintProfile(const chief::JobSetup& setup, const worker::Profiler& profiler, int64_t steps) {
  const worker::ProfileReport report = worker::ReportByOp(profiler);
  const JobSpec& job = setup.job;
  const int64_t batch = job.train().global_batch_size();
  std::cout << absl::StreamFormat(
                   "job '%s': %d steps of %d samples in %d logical shards on one worker, threads: %d\n\n", job.name(),
                   steps, batch, job.train().logical_shards(), job.resources().cpu_threads())
            << worker::TableText(report, steps) << "\n"
            << absl::StreamFormat("%.1f samples/s, %.2f ms per step\n",
                                  static_cast<double>(steps * batch) * 1e9 / static_cast<double>(report.total_ns),
                                  static_cast<double>(report.total_ns) * 1e-6 / static_cast<double>(steps))
            << worker::SharesText(report) << "\n";
  if (const std::string slow = worker::SlowText(report); !slow.empty()) std::cout << slow << "\n";
}

int ExitCodeOf(PrepareProblem problem) { return problem == PrepareProblem::kData ? kExitBadData : kExitBadJob; }

absl::StatusOr<chief::JobSetup> SetUp(const ProfileOptions& options, int& exit_code) {
  chief::ChiefOptions chief{.job_path = options.job_path, .overrides = options.overrides};
  chief.inspect_data = worker::InspectData;
  chief.evaluate_node = device::EvaluateNode;
  return chief::SetUpJob(chief, exit_code);
}

// What a step would take on a GPU that is not here. The kernels for that are in a program of their own: their shared
// memory is a part of every thread of the program that has them, and a worker has many threads.
int AccountOf(const ProfileOptions& options) {
  const std::string program = (fs::path(OwnProgram()).parent_path() / "lockstep_account").string();
  std::vector<std::string> words = {program, *options.model_of, absl::StrCat(options.workers), options.job_path};
  words.insert(words.end(), options.overrides.begin(), options.overrides.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  return Fail(absl::ErrnoToStatus(errno, absl::StrCat(program, " cannot be started; it belongs beside this program")),
              kExitBug);
}

int Profile(const ProfileOptions& options) {
  if (options.model_of.has_value()) return AccountOf(options);
  if (device::ClearKernelEnvironment().must_restart) return Fail(worker::ExecuteAgain(), kExitBug);
  const absl::StatusOr<device::WorkerDevice> device = device::ParseWorkerDevice(options.device);
  if (!device.ok()) return Fail(device.status(), kExitUsage);
  int exit_code = kExitDone;
  absl::StatusOr<chief::JobSetup> setup = SetUp(options, exit_code);
  if (!setup.ok()) return Fail(setup.status(), exit_code);

  TraceFile file;
  const std::string path = options.output.empty() ? absl::StrCat(setup->job.name(), ".trace.json") : options.output;
  if (const absl::Status opened = file.Open(path); !opened.ok()) return Fail(opened, kExitStorage);

  worker::Profiler profiler;
  worker::ReplicaProblem problem;
  const auto replica =
      worker::Replica::Make(setup->metagraph_bytes, setup->job, "", nullptr, problem, &profiler, *device);
  if (replica == nullptr) return Fail(problem.status, ExitCodeOf(problem.problem));
  std::vector<worker::TracedStep> steps;
  absl::Status status = LoadInitialState(*setup, *replica);
  if (status.ok()) status = Train(*replica, profiler, 1, kWarmUpSteps, &steps);
  if (!status.ok()) return Fail(status, kExitBadData);

  steps.clear();
  profiler.Start();
  status = Train(*replica, profiler, kWarmUpSteps + 1, kWarmUpSteps + options.steps, &steps);
  profiler.Stop();
  if (!status.ok()) return Fail(status, kExitBadData);
  PrintProfile(*setup, profiler, options.steps);
  status = file.Write(worker::ChromeTrace(profiler, setup->job.name(), steps));
  if (status.ok() && profiler.left_out()) {
    std::cout << absl::StreamFormat("the trace ends in step %d of %d, after %d runs; the table counts all\n",
                                    worker::StepsInTrace(profiler, steps), options.steps, profiler.spans().size());
  }
  return status.ok() ? static_cast<int>(kExitDone) : Fail(status, StorageExitCode(status));
}

}  // namespace

void AddProfile(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("profile", "Train some steps here and show where their time goes");
  auto options = std::make_shared<ProfileOptions>();
  command->add_option("job", options->job_path, "The job file")->required();
  command->add_option("--set", options->overrides, "Override a setting: key=value")->allow_extra_args(false);
  CLI::Option* const model_of = command->add_option("--model-of", options->model_of,
                                                    "Account for a step on a GPU that is not here: h100, h200 or b200");
  command->add_option("--workers", options->workers, "Workers of the account")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str()
      ->needs(model_of);
  command->add_option("--steps", options->steps, "How many steps to measure, after 3 that are not")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str()
      ->excludes(model_of);
  command->add_option("--device", options->device, "What to compute on: auto, cpu, cuda or cuda:N")
      ->capture_default_str()
      ->excludes(model_of);
  command->add_option("-o,--output", options->output, "The trace to write (default: NAME.trace.json)")
      ->excludes(model_of);
  command->callback([options, &exit_code] { exit_code = Profile(*options); });
}

}  // namespace lockstep::cli
