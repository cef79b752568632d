// `lockstep predict`: what a trained model gives for every sample of a data set, as an npy file.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/graph/passes/prediction_graph.h"
#include "common/log/escape.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/training/training_policy.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/model_to_run.h"
#include "deploy/cli/output_file.h"
#include "deploy/cli/own_program.h"
#include "worker/data/npy_header.h"
#include "worker/device/host/environment.h"
#include "worker/inference/piece_store.h"
#include "worker/inference/predictor.h"
#include "worker/session/worker_main.h"

namespace lockstep::cli {
namespace {

// How often a process that waits for others looks whether they are done, or gone.
constexpr absl::Duration kLook = absl::Milliseconds(100);
constexpr absl::Duration kSayEvery = absl::Seconds(10);

struct PredictOptions {
  ModelRunOptions run;
  DataChoice data;
  std::string path;
  std::string output;  // of the model
  int64_t batch = 0;
  int workers = 1;
  int helper = 0;  // which of those that --workers started; 0: none of them
};

// The words that this process was started with.
std::vector<std::string> OwnWords() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  return words;
}

// The further processes of --workers. They end with this one; one that ends before leaves its pieces to the others.
class Helpers {
 public:
  ~Helpers() {
    for (const pid_t pid : pids_) {
      while (waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
      }
    }
  }

  absl::Status Start(int count) {
    const std::string program = OwnProgram();
    for (int rank = 1; rank <= count; ++rank) {
      std::vector<std::string> words = OwnWords();
      words.insert(words.end(), {"--helper", absl::StrCat(rank)});
      std::vector<char*> argv;
      for (std::string& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      const pid_t pid = fork();
      if (pid < 0) return absl::ResourceExhaustedError(absl::StrCat("no process could be started: ", strerror(errno)));
      if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        execv(program.c_str(), argv.data());
        _exit(kExitBug);
      }
      pids_.push_back(pid);
    }
    return absl::OkStatus();
  }

 private:
  std::vector<pid_t> pids_;
};

struct Prediction {
  std::string output;
  int64_t batch = 0;
  std::unique_ptr<worker::Predictor> predictor;
};

absl::StatusOr<Prediction> MakePrediction(const PredictOptions& options, const ModelToRun& model,
                                          const worker::DataSource& source, const DeviceToRun& device) {
  Prediction prediction;
  LS_ASSIGN_OR_RETURN(prediction.output, ChoosePrediction(model.metagraph, options.output));
  prediction.batch = options.batch > 0 ? options.batch : EvalBatch(model.job);
  LS_ASSIGN_OR_RETURN(prediction.predictor,
                      worker::Predictor::Make(*device.made.device, model.metagraph, model.read, source,
                                              {.output = prediction.output,
                                               .batch = prediction.batch,
                                               .seed = model.job.train().seed(),
                                               .step = model.step}));
  return prediction;
}

// What makes these predictions others than those of another run, in lines.
std::string About(const ModelToRun& model, const worker::DataSource& source, const Prediction& prediction) {
  const TensorSpec& row = prediction.predictor->row();
  return absl::StrCat("weights ", model.digest, model.average ? " (train.ema)" : "", "\ninputs ", source.content_hash(),
                      "\noutput ", prediction.output, " ", DTypeName(row.dtype), ShapeString(row.shape), "\nbatch ",
                      prediction.batch, "\n");
}

class PredictionRun {
 public:
  PredictionRun(worker::PieceStore store, worker::Predictor& predictor, bool quiet)
      : store_(std::move(store)), predictor_(predictor), quiet_(quiet) {}

  // Until every piece is there, of this process or of others.
  absl::Status ComputeAll() {
    if (store_.found() > 0)
      Say(absl::StrCat("going on: ", store_.found(), " of ", store_.pieces(), " pieces are there"));
    while (true) {
      LS_ASSIGN_OR_RETURN(const worker::PieceStore::Taken taken, store_.Take());
      if (taken.left == worker::PieceStore::Left::kNone) return absl::OkStatus();
      if (taken.left == worker::PieceStore::Left::kOthers) {
        absl::SleepFor(kLook);
        continue;
      }
      LS_RETURN_IF_ERROR(Compute(taken.piece));
    }
  }

  absl::Status Join(int64_t samples) {
    const TensorSpec& row = predictor_.row();
    Shape shape = row.shape;
    shape.insert(shape.begin(), samples);
    LS_ASSIGN_OR_RETURN(const std::string header, worker::NpyHeader(row.dtype, shape));
    return store_.Join(header, samples * predictor_.row_bytes());
  }

 private:
  absl::Status Compute(const worker::PieceStore::Piece& piece) {
    std::vector<std::byte> rows;
    for (int64_t batch = piece.first_batch; batch < piece.last_batch; ++batch) {
      LS_ASSIGN_OR_RETURN(const absl::Span<const std::byte> more, predictor_.Run(batch));
      rows.insert(rows.end(), more.begin(), more.end());
    }
    LS_RETURN_IF_ERROR(store_.Put(piece, rows));
    if (SteadyNow() - said_ >= kSayEvery) Say(absl::StrCat("at piece ", piece.index + 1, " of ", store_.pieces()));
    return absl::OkStatus();
  }

  void Say(const std::string& text) {
    said_ = SteadyNow();
    if (!quiet_) std::cerr << text << "\n";
  }

  worker::PieceStore store_;
  worker::Predictor& predictor_;
  const bool quiet_;
  absl::Time said_ = SteadyNow();
};

// The file to write. AlreadyExists: it is there, and nobody is about it.
absl::StatusOr<OutputFile> OpenOutput(const PredictOptions& options) {
  LS_ASSIGN_OR_RETURN(OutputFile file, OutputFile::At(options.path));
  LS_ASSIGN_OR_RETURN(const bool there, file.folder->Exists(file.name));
  LS_ASSIGN_OR_RETURN(const bool begun, file.folder->Exists(file.name + ".parts"));
  if (!there || begun) return file;
  return absl::AlreadyExistsError(absl::StrCat(options.path, " is there already; give another name, or remove it"));
}

absl::Status WritePredictions(const PredictOptions& options, const ModelToRun& model, const OutputFile& file,
                              const worker::DataSource& source, const DeviceToRun& device) {
  LS_ASSIGN_OR_RETURN(const Prediction prediction, MakePrediction(options, model, source, device));
  absl::StatusOr<worker::PieceStore> store = worker::PieceStore::Open(
      *file.folder, file.name, About(model, source, prediction), prediction.predictor->batches());
  // Others were faster.
  if (options.helper > 0 && absl::IsAlreadyExists(store.status())) return absl::OkStatus();
  LS_RETURN_IF_ERROR(store.status());
  Helpers helpers;
  if (options.helper == 0) LS_RETURN_IF_ERROR(helpers.Start(options.workers - 1));
  const absl::Time begin = SteadyNow();
  PredictionRun run(*std::move(store), *prediction.predictor, /*quiet=*/options.helper > 0);
  LS_RETURN_IF_ERROR(run.ComputeAll());
  LS_RETURN_IF_ERROR(run.Join(source.num_samples()));
  if (options.helper > 0) return absl::OkStatus();
  const TensorSpec& row = prediction.predictor->row();
  const double seconds = absl::ToDoubleSeconds(SteadyNow() - begin);
  std::cout << absl::StreamFormat("%d predictions of '%s', %s%s each, in %s: %.0f samples/s\n", source.num_samples(),
                                  EscapeControls(prediction.output), DTypeName(row.dtype), ShapeString(row.shape),
                                  options.path, static_cast<double>(source.num_samples()) / seconds);
  return absl::OkStatus();
}

int Predict(PredictOptions options) {
  if (device::ClearKernelEnvironment().must_restart) return Fail(worker::ExecuteAgain(), kExitBug);
  options.run.local_rank = options.helper;
  const absl::StatusOr<OutputFile> file = OpenOutput(options);
  if (options.helper > 0 && absl::IsAlreadyExists(file.status())) return kExitDone;
  if (!file.ok()) return Fail(file.status(), StorageExitCode(file.status()));
  const absl::StatusOr<ModelToRun> model = OpenTrainedModel(options.run, /*average_as_evaluated=*/false);
  if (!model.ok()) return Fail(model.status(), StorageExitCode(model.status()));
  const absl::StatusOr<job::DataFiles> files = model->FilesOf(options.data);
  if (!files.ok()) return Fail(files.status(), kExitBadJob);
  const absl::StatusOr<std::unique_ptr<worker::DataSource>> source = model->OpenData(*files, /*labels=*/false);
  if (!source.ok()) return Fail(source.status(), kExitBadData);
  const absl::StatusOr<DeviceToRun> device = MakeDeviceToRun(*model, options.run);
  if (!device.ok()) return Fail(device.status(), kExitBadJob);
  if (options.helper == 0) std::cerr << EscapeControls(model->description) << "\n";
  const absl::Status written = WritePredictions(options, *model, *file, **source, *device);
  return written.ok() ? static_cast<int>(kExitDone) : Fail(written, StorageExitCode(written));
}

}  // namespace

void AddPredict(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("predict", "Write what a trained model gives for every sample of a data set");
  auto options = std::make_shared<PredictOptions>();
  AddModelRunOptions(*command, options->run);
  AddDataChoice(*command, options->data, /*labels=*/false);
  command->add_option("-o,--output", options->path, "The npy file to write")->required();
  command->add_option("--of", options->output, "Which output of the model (default: the one that the loss compares)");
  command->add_option("--batch", options->batch, "Samples computed at once (default: as in training)")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 20));
  command
      ->add_option("--workers", options->workers,
                   "Processes on this machine that share the work; others may join by the same command elsewhere")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--helper", options->helper)->group("");
  command->callback([options, &exit_code] { exit_code = Predict(*options); });
}

}  // namespace lockstep::cli
