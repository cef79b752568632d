// Whatever `lockstep check` accepts takes a first step, and whatever it refuses is refused by a run in the same words:
// over a corpus of jobs with any one, and many pairs, of some sixty settings, good and bad. The run is the chief's
// set-up and directory and a worker's replica in this process; check_test.cc has real ones.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/server/job_setup.h"
#include "chief/server/job_store.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/check_job.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/evaluate_node.h"
#include "worker/session/inspect_data.h"
#include "worker/step/replica.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Sets = std::vector<std::string>;

// An npy file, version 1, of C order.
void WriteNpy(const std::string& path, const std::string& type, const std::string& shape, const std::string& elements) {
  std::string header = absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  header.resize((10 + header.size() + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  std::ofstream(path, std::ios::binary) << absl::string_view("\x93NUMPY\1\0", 8)
                                        << static_cast<char>(header.size() & 255)
                                        << static_cast<char>(header.size() >> 8) << header << elements;
}

template <typename T>
std::string BytesOf(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The files that the jobs read, made once: 32 samples of 12 numbers in 4 classes, and what can be wrong with them.
class Files {
 public:
  Files() : folder_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/corpus")) {
    fs::create_directories(folder_);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    std::vector<float> x(kSamples * 12), y(kSamples);
    std::vector<int64_t> labels(kSamples);
    for (float& value : x) value = normal(random);
    for (int i = 0; i < kSamples; ++i) labels[i] = i % 4;
    for (float& value : y) value = normal(random);
    const auto npy = [&](const char* name, const char* type, const char* shape, const std::string& bytes) {
      WriteNpy(Path(name), type, shape, bytes);
    };
    npy("x.npy", "<f4", "32, 12", BytesOf(x));
    npy("images.npy", "<f4", "32, 3, 2, 2", BytesOf(x));
    npy("few.npy", "<f4", "31, 12", BytesOf(x).substr(0, 31 * 48));
    npy("short.npy", "<f4", "32, 12", BytesOf(x).substr(0, 100));
    npy("labels.npy", "<i8", "32", BytesOf(labels));
    npy("targets.npy", "<f4", "32", BytesOf(y));
    npy("pairs.npy", "<f4", "16, 2", BytesOf(y));
    for (const auto& [name, label] : {std::pair("beyond.npy", int64_t{4}), std::pair("below.npy", int64_t{-1})}) {
      std::vector<int64_t> wrong = labels;
      wrong[9] = label;
      npy(name, "<i8", "32", BytesOf(wrong));
    }
    std::vector<float> holes = x;
    holes[17] = std::numeric_limits<float>::quiet_NaN();
    npy("nan.npy", "<f4", "32, 12", BytesOf(holes));
    y[3] = std::numeric_limits<float>::quiet_NaN();
    npy("nan_targets.npy", "<f4", "32", BytesOf(y));
    std::ifstream good("tests/conformance/pytorch/import/cnn.labels.npy", std::ios::binary);
    std::string of_cnn{std::istreambuf_iterator<char>(good), {}};
    if (of_cnn.size() > 8) of_cnn[of_cnn.size() - 8] = 99;
    std::ofstream(Path("cnn_beyond.npy"), std::ios::binary) << of_cnn;
    std::ofstream(Path("foreign")) << "this is no array";
    std::ofstream(Path("job.yaml")) << "name: corpus\n"
                                       "model: {builtin: {name: mlp, classes: 4, hidden: [6]}}\n"
                                       "data:\n"
                                       "  train: {inputs: x.npy, labels: labels.npy}\n"
                                       "train:\n"
                                       "  duration: 4steps\n"
                                       "  global_batch_size: 8\n"
                                       "  logical_shards: 2\n"
                                       "  optimizer: {lr: 0.01}\n"
                                       "resources: {device: cpu}\n";
  }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

 private:
  static constexpr int kSamples = 32;
  const std::string folder_;
};

const Files& Corpus() {
  static const Files files;
  return files;
}

struct Setting {
  Sets sets;
  bool good;
};

// A model that PyTorch exported, and the data that it was trained on.
Sets Imported(const std::string& name, const Sets& more = {}) {
  const std::string file = fs::absolute(absl::StrCat("tests/conformance/pytorch/import/", name)).string();
  Sets sets = {"model.builtin=null", absl::StrCat("model.onnx=", file, ".onnx"),
               absl::StrCat("data.train.inputs=", file, ".inputs.npy"),
               absl::StrCat("data.train.labels=", file, ".labels.npy")};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

const std::vector<Setting>& Settings() {
  static const std::string eval = "data.eval={inputs: x.npy, labels: labels.npy}";
  static const std::vector<Setting> settings = {
      {{"train.optimizer={name: adam, lr: 0.001}"}, true},
      {{"train.optimizer={name: adamw, lr: 0.001}", "train.optimizer.no_decay=[\"*.bias\"]"}, true},
      {{"train.optimizer.momentum=0.9", "train.optimizer.nesterov=true"}, true},
      {{"train.clip_norm=1"}, true},
      {{"train.ema={}"}, true},
      {{"train.schedule={name: cosine, warmup: 1steps}"}, true},
      {{"train.precision=bf16"}, true},
      {{"train.reduction=fast"}, true},
      {{"train.on_nan=skip_step"}, true},
      {{"train.recompute=blocks"}, true},
      {{"train.micro_batch=2"}, true},
      {{"train.global_batch_size=4", "train.logical_shards=4"}, true},
      {{"train.duration=1h"}, true},
      {{"model.label_smoothing=0.1"}, true},
      {{"model.loss=mse", "model.builtin.classes=1", "data.train.labels=targets.npy"}, true},
      {{"model.frozen=[\"*.bias\"]"}, true},
      {{"data.normalize={mean: 0.5, std: 2}"}, true},
      {{"data.train.inputs=images.npy", "model.builtin={name: lenet, classes: 4, input: [3, 2, 2]}"}, false},
      {{"data.train.inputs=images.npy"}, true},
      {{"resources.device=reference"}, true},
      {{"resources.cpu_memory=1GiB"}, true},
      {{eval}, true},
      {{eval, "checkpoint.keep_best=true", "eval.early_stop.patience=2"}, true},
      {Imported("cnn"), true},
      // The job file.
      {{"train.optimiser=3"}, false},
      {{"train.checkpoint={every: 5s}"}, false},
      {{"train.optimizer.lr=fast"}, false},
      {{"train.optimizer.lr=null"}, false},
      {{"train.optimizer.beta1=0.5"}, false},
      {{"train.logical_shards=3"}, false},
      {{"train.micro_batch=3"}, false},
      {{"train.duration=10"}, false},
      {{"train.schedule={name: cosine, min_lr: 1}"}, false},
      {{"train.on_nan=rollback"}, false},
      {{"model.loss=guess"}, false},
      {{"model.builtin.name=resnet"}, false},
      {{"model.builtin=null"}, false},
      {{"data.train.labels=null", "data.train.format=npy"}, false},
      {{"data.train.sequence_length=4"}, false},
      {{"data.normalize={mean: [1, 2], std: [1, 2, 3]}"}, false},
      {{"eval.every=1ep"}, false},
      {{"name=a b"}, false},
      {{"numerics.mode=relaxed"}, false},
      // The model.
      {{"model.builtin=null", "model.onnx=nowhere.onnx"}, false},
      {{"model.builtin=null", "model.onnx=foreign"}, false},
      {{"model.frozen=[nothing]"}, false},
      {{"model.frozen=[\"*\"]"}, false},
      {{"train.optimizer.no_decay=[nothing]"}, false},
      {{"model.builtin.classes=3"}, false},
      {{"model.builtin.input=[13]"}, false},
      {{"model.loss=output:scores"}, false},
      {{"model.builtin={name: gpt2, vocabulary: 16, context: 4, layers: 1, heads: 1, width: 8}"}, false},
      {{eval, "eval.sample={prompt: a}"}, false},
      // The data.
      {{"data.train.inputs=nowhere.npy"}, false},
      {{"data.train.labels=nowhere.npy"}, false},
      {{"data.train.inputs=foreign"}, false},
      {{"data.train.inputs=short.npy"}, false},
      {{"data.train.inputs=few.npy"}, false},
      {{"data.train.inputs=nan.npy"}, false},
      {{"data.train.labels=nan_targets.npy", "model.loss=mse", "model.builtin.classes=1"}, false},
      {{"data.train.labels=beyond.npy"}, false},
      {{"data.train.labels=below.npy"}, false},
      {Imported("cnn", {"data.train.labels=cnn_beyond.npy"}), false},
      {{"data.train.labels=targets.npy"}, false},
      {{"data.train.labels=pairs.npy", "model.loss=mse"}, false},
      {{"data.eval={inputs: x.npy, labels: beyond.npy}"}, false},
      {{"data.eval={inputs: images.npy, labels: labels.npy}"}, false},
      {{"data.eval={inputs: nowhere.npy, labels: nowhere.npy}"}, false},
      {{"data.normalize={mean: [1, 2, 3, 4, 5], std: 1}"}, false},
      {{absl::StrCat("data.train.sha256=", std::string(64, 'a'))}, false},
      {{"data.memory=100B"}, false},
      // The machine.
      {{"resources.cpu_memory=100B"}, false},
      {{"resources.device=cuda"}, false},
      {{"train.duration=4steps", "train.schedule.warmup=9steps"}, false},
  };
  return settings;
}

// What a run of the job comes to: its set-up and its directory as a chief makes them, a worker's replica, a step, and a
// slice of an evaluation.
absl::Status FirstStep(const Sets& sets, const std::string& directory, int& exit_code) {
  chief::ChiefOptions options;
  options.job_path = Corpus().Path("job.yaml");
  options.overrides = sets;
  options.directory = directory;
  options.inspect_data = worker::InspectData;
  options.evaluate_node = device::EvaluateNode;
  LS_ASSIGN_OR_RETURN(chief::JobSetup setup, chief::SetUpJob(options, exit_code));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<chief::JobStore> store, chief::JobStore::Open(setup, exit_code));
  LS_ASSIGN_OR_RETURN(const JobSpec job, ParseJob(store->job_yaml(), "/job.yaml"));
  worker::ReplicaProblem problem;
  const auto replica = worker::Replica::Make(setup.metagraph_bytes, job, "", nullptr, problem);
  exit_code = problem.problem == PrepareProblem::kData ? kExitBadData : kExitBadJob;
  if (replica == nullptr) return problem.status;
  LS_ASSIGN_OR_RETURN(const std::vector<Tensor> initial, chief::InitialStateOf(setup));
  LS_RETURN_IF_ERROR(replica->state().host().Load(initial));
  LS_RETURN_IF_ERROR(replica->state().Store());
  replica->runner().StateReplaced();
  exit_code = kExitBadData;
  const auto communicators = worker::MakeLoopback({1, 1}, 1);
  for (int64_t step = 1; step <= 4; ++step) {  // an epoch: every sample
    LS_ASSIGN_OR_RETURN(const worker::StepResult result, replica->runner().RunStep(*communicators[0], step, {}));
    if (!result.applied) return absl::InvalidArgumentError(result.message);
  }
  if (!job.data().has_eval()) return absl::OkStatus();
  return replica->runner().RunSlice(*communicators[0], 4, 0, {}).status();
}

// Check's verdict and the run's on one job. Returns whether check accepted it.
bool CheckAgrees(const Sets& sets) {
  static int count = 0;
  const std::string directory = Corpus().Path(absl::StrCat("run-", ++count));
  INFO(absl::StrJoin(sets, " "));
  Findings findings;
  CheckJob({.path = Corpus().Path("job.yaml"), .overrides = sets, .directory = directory, .device = {}}, findings);
  CHECK_FALSE(fs::exists(directory));
  int exit_code = kExitDone;
  const absl::Status ran = FirstStep(sets, directory, exit_code);
  INFO("check: " << findings.first_error() << "\nrun: " << ran);
  CHECK(ran.ok() == !findings.failed());
  if (findings.failed()) {
    CHECK(ran.message() == findings.first_error().message());
    CHECK(exit_code == findings.exit_code());
  }
  fs::remove_all(directory);
  return !findings.failed();
}

TEST_CASE("check: any one setting of the corpus is judged by check as by a run", "[e2e]") {
  SetLogStyle(LogLevel::error, LogFormat::text);
  CHECK(CheckAgrees({}));
  for (const Setting& setting : Settings()) {
    INFO(absl::StrJoin(setting.sets, " "));
    CHECK(CheckAgrees(setting.sets) == setting.good);
  }
}

TEST_CASE("check: pairs of settings of the corpus are judged by check as by a run", "[e2e]") {
  SetLogStyle(LogLevel::error, LogFormat::text);
  constexpr int kPairs = 300;
  std::mt19937 random(11);
  int accepted = 0;
  for (int i = 0; i < kPairs; ++i) {
    // Every other pair is of good ones, so that half of the corpus is.
    const std::vector<Setting>& all = Settings();
    Sets sets;
    for (int picked = 0; picked < 2;) {
      const Setting& setting = all[random() % all.size()];
      if (i % 2 == 0 && !setting.good) continue;
      sets.insert(sets.end(), setting.sets.begin(), setting.sets.end());
      ++picked;
    }
    accepted += CheckAgrees(sets) ? 1 : 0;
  }
  CHECK(accepted > kPairs / 5);
  CHECK(accepted < kPairs * 4 / 5);
}

}  // namespace
}  // namespace lockstep::cli
