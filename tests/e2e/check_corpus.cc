#include "tests/e2e/check_corpus.h"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/e2e/small_onnx.h"
#include "worker/data/test_containers.h"
#include "worker/data/test_files.h"
#include "worker/data/token_file.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;
using worker::Bytes;

constexpr int kSamples = 32;
constexpr int kWidth = 12;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Npy(const std::string& type, const std::string& shape, const std::string& elements) {
  return worker::NpyBytes(worker::NpyHeader(type, absl::StrCat("(", shape, ")")), elements);
}

// The numbers of a file that PyTorch made, with another last one.
std::string WithLastLabel(const std::string& path, int64_t label) {
  std::string bytes = Read(path);
  if (bytes.size() < 8) throw std::runtime_error(path);
  return bytes.replace(bytes.size() - 8, 8, Bytes<int64_t>({label}));
}

class Files {
 public:
  Files() : folder_(absl::StrCat(std::getenv("TEST_TMPDIR"), "/corpus")) {
    fs::create_directories(folder_);
    std::mt19937 random(7);
    std::normal_distribution<float> normal;
    x_.resize(kSamples * kWidth);
    targets_.resize(kSamples);
    for (float& value : x_) value = normal(random);
    for (int i = 0; i < kSamples; ++i) labels_.push_back(i % 4);
    for (float& value : targets_) value = normal(random);
    WriteArrays();
    WriteOthers();
    WriteLinear(Path("linear.onnx"), "x");
    WriteLinear(Path("called_labels.onnx"), "labels");
    WriteTwoInputs(Path("two_inputs.onnx"), "labels");
    WriteTwoInputs(Path("two_others.onnx"), "other");
    WriteCost(Path("cost.onnx"));
    WriteByBatch(Path("by_batch.onnx"));
    WriteTwoOutputs(Path("two_outputs.onnx"));
    WriteMasked(Path("masked.onnx"));
    WriteNanAware(Path("nan_aware.onnx"));
    Write("job.yaml",
          "name: corpus\n"
          "model: {builtin: {name: mlp, classes: 4, hidden: [6]}}\n"
          "data:\n"
          "  train: {inputs: x.npy, labels: labels.npy}\n"
          "train:\n"
          "  duration: 4steps\n"
          "  global_batch_size: 8\n  logical_shards: 2\n  optimizer: {lr: 0.01}\n"
          "resources: {device: cpu}\n");
  }

  std::string Path(const std::string& name) const { return absl::StrCat(folder_, "/", name); }

 private:
  void Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(Path(name), std::ios::binary) << bytes;
  }

  void WriteArrays() const {
    const std::string images = Bytes(x_);
    Write("x.npy", Npy("<f4", "32, 12", images));
    Write("images.npy", Npy("<f4", "32, 3, 2, 2", images));
    Write("few.npy", Npy("<f4", "31, 12", images.substr(0, 31 * kWidth * 4)));
    Write("short.npy", Npy("<f4", "32, 12", images.substr(0, 100)));
    Write("labels.npy", Npy("<i8", "32,", Bytes(labels_)));
    Write("targets.npy", Npy("<f4", "32,", Bytes(targets_)));
    Write("pairs.npy", Npy("<f4", "16, 2", Bytes(targets_)));
    Write("wide_targets.npy", Npy("<f4", "32, 1", Bytes(targets_)));
    for (const auto& [name, label] : {std::pair("beyond.npy", int64_t{4}), std::pair("below.npy", int64_t{-1})}) {
      std::vector<int64_t> wrong = labels_;
      wrong[9] = label;
      Write(name, Npy("<i8", "32,", Bytes(wrong)));
    }
    for (const auto& [name, value] : {std::pair("nan.npy", kNan), std::pair("masked.npy", -kInfinity)}) {
      std::vector<float> holes = x_;
      holes[17] = value;
      Write(name, Npy("<f4", "32, 12", Bytes(holes)));
    }
    std::vector<float> holes = targets_;
    holes[3] = kNan;
    Write("nan_targets.npy", Npy("<f4", "32,", Bytes(holes)));
    std::vector<float> scores(x_.begin(), x_.begin() + kSamples * 4);
    scores[17] = kNan;
    Write("nan_scores.npy", Npy("<f4", "32, 4", Bytes(scores)));
    const std::string cnn = "tests/conformance/pytorch/import/cnn.labels.npy";
    Write("cnn_beyond.npy", WithLastLabel(cnn, 99));
    Write("cnn_below.npy", WithLastLabel(cnn, -1));
  }

  void WriteOthers() const {
    Write("foreign", "this is no array");
    std::string csv = "label";
    for (int c = 0; c < kWidth; ++c) absl::StrAppend(&csv, ",c", c);
    for (int i = 0; i < kSamples; ++i) {
      absl::StrAppend(&csv, "\n", labels_[i]);
      for (int c = 0; c < kWidth; ++c) absl::StrAppend(&csv, ",", x_[i * kWidth + c]);
    }
    Write("x.csv", csv + "\n");
    Write("text.csv", csv.replace(csv.size() - 3, 3, "abc") + "\n");
    const std::string x = Read(Path("x.npy"));
    const std::string labels = Read(Path("labels.npy"));
    Write("x.npz", worker::ZipBytes({{"x.npy", x}, {"labels.npy", labels}}));
    Write("unlabelled.npz", worker::ZipBytes({{"x.npy", x}}));
    Write("two.npz", worker::ZipBytes({{"x.npy", x}, {"labels.npy", x}, {"classes.npy", labels}}));
    Write("two_others.npz", worker::ZipBytes({{"x.npy", x}, {"other.npy", x}, {"classes.npy", labels}}));
    std::string records;
    for (int i = 0; i < kSamples; ++i) {
      const std::vector<float> sample(x_.begin() + i * kWidth, x_.begin() + (i + 1) * kWidth);
      tf::Example example = worker::MakeExample("", sample, {labels_[i]});
      example.mutable_features()->mutable_feature()->erase("image");
      records += worker::RecordBytes(example.SerializeAsString());
    }
    Write("x.tfrecord", records);
    records[20] = static_cast<char>(records[20] ^ 1);
    Write("damaged.tfrecord", records);
    std::string text;
    for (int i = 0; i < 4 * kSamples + 1; ++i) text += static_cast<char>(i * 7 % 16);
    const std::string header = worker::TokenFileHeader(static_cast<int64_t>(text.size()));
    Write("tokens.bin", header + worker::BytesAsTokens(text));
    text[50] = 16;
    Write("tokens_beyond.bin", header + worker::BytesAsTokens(text));
  }

  const std::string folder_;
  std::vector<float> x_, targets_;
  std::vector<int64_t> labels_;
};

const Files& TheFiles() {
  static const Files files;
  return files;
}

Sets Join(Sets sets, const Sets& more) {
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

// A model that PyTorch exported, and the data that it was trained on. `name`: "import/cnn".
Sets Exported(const std::string& name, const Sets& more = {}) {
  const std::string file = fs::absolute(absl::StrCat("tests/conformance/pytorch/", name)).string();
  return Join({"model.builtin=null", absl::StrCat("model.onnx=", file, ".onnx"),
               absl::StrCat("data.train.inputs=", file, ".inputs.npy"),
               absl::StrCat("data.train.labels=", file, ".labels.npy")},
              more);
}

// Another of them, on the data of stated/averaging.
Sets Late(const Sets& more = {}) {
  const std::string file = fs::absolute("tests/conformance/pytorch/stated/late.onnx").string();
  return Exported("stated/averaging", Join({"model.onnx=" + file}, more));
}

// A small model, on the job's own data.
Sets Onnx(const std::string& name, const Sets& more = {}) {
  return Join({"model.builtin=null", absl::StrCat("model.onnx=", TheFiles().Path(name), ".onnx")}, more);
}

// One file of inputs and labels.
Sets OneFile(const std::string& name, const Sets& more = {}) {
  return Join({"data.train.inputs=" + name, "data.train.labels=null"}, more);
}

constexpr char kEval[] = "data.eval={inputs: x.npy, labels: labels.npy}";
constexpr char kGpt2[] = "model.builtin={name: gpt2, vocabulary: 16, context: 4, layers: 1, heads: 1, width: 8}";

// A small language model on tokens.
Sets Tokens(const std::string& name) {
  return {"model.builtin=null", kGpt2, "data.train=null",
          absl::StrCat("data.train={tokens: ", name, ", sequence_length: 4}")};
}

std::vector<Setting> OfTraining() {
  return {
      {{"train.optimizer={name: adam, lr: 0.001}"}, true},
      {{"train.optimizer={name: adamw, lr: 0.001}", "train.optimizer.no_decay=[\"*.bias\"]"}, true},
      {{"train.optimizer.momentum=0.9", "train.optimizer.nesterov=true"}, true},
      {{"train.optimizer.groups=[{parameters: \"*.bias\", lr: 0.2, weight_decay: 0}]"}, true},
      {{kEval, "train.schedule={name: plateau, patience: 2}"}, true},
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
      {{"resources.device=reference"}, true},
      {{"resources.cpu_memory=1GiB"}, true},
      {{kEval}, true},
      {{kEval, "checkpoint.keep_best=true", "eval.early_stop.patience=2"}, true},
      // Mistakes.
      {{"train.optimiser=3"}},
      {{"train.checkpoint={every: 5s}"}},
      {{"train.optimizer.lr=fast"}},
      {{"train.optimizer.lr=null"}},
      {{"train.optimizer.beta1=0.5"}},
      {{"train.logical_shards=3"}},
      {{"train.micro_batch=3"}},
      {{"train.duration=10"}},
      {{"train.schedule={name: cosine, min_lr: 1}"}},
      {{"train.duration=4steps", "train.schedule.warmup=9steps"}},
      {{"train.schedule={name: plateau}"}, false, "give data.eval"},
      {{"train.optimizer.groups=[{parameters: \"*.bias\"}]"}, false, "changes nothing"},
      {{"train.optimizer.groups=[{lr: 1}]"}},
      {{"eval.every=1ep"}},
      {{"name=a b"}},
      {{"resources.cpu_memory=100B"}},
      {{"resources.device=cuda"}, false, "/nowhere/"},
  };
}

std::vector<Setting> OfModels() {
  return {
      {{"model.label_smoothing=0.1"}, true},
      {{"model.loss=mse", "model.builtin.classes=1", "data.train.labels=targets.npy"}, true},
      {{"model.frozen=[\"*.bias\"]"}, true, "by model.trainable and model.frozen"},
      {{"data.train.inputs=images.npy", "model.builtin={name: lenet, classes: 4, input: [3, 2, 2]}"}},
      {{"model.loss=guess"}},
      {{"model.builtin.name=resnet"}},
      {{"model.builtin=null"}},
      {{"model.builtin=null", "model.onnx=nowhere.onnx"}},
      {{"model.builtin=null", "model.onnx=foreign"}},
      {{"model.frozen=[nothing]"}},
      {{"model.frozen=[\"*\"]"}},
      {{"train.optimizer.no_decay=[nothing]"}},
      {{"train.optimizer.groups=[{parameters: nothing, lr: 1}]"}, false, "groups[0].parameters"},
      {{"train.optimizer.groups=[{parameters: \"*\", lr: 1}, {parameters: \"*.bias\", lr: 2}]"},
       false,
       "groups before it name all of its parameters"},
      {{"model.builtin.classes=3"}},
      {{"model.builtin.input=[13]"}},
      {{"model.loss=output:scores"}},
      {{kGpt2}},
      {{kEval, "eval.sample={prompt: a}"}},
      {Exported("import/cnn"), true},
      {Exported("import/cnn", {"data.train.labels=cnn_beyond.npy"}), false, "is 99, the model has the classes 0 to "},
      {Exported("import/cnn", {"data.train.labels=cnn_below.npy"}), false, "is -1, classes count from 0"},
      {Onnx("linear", {kEval}), true},
      {Onnx("two_outputs", {"model.frozen=[v]"}), true, "1 parameter without influence on the loss: v"},
      {Onnx("two_inputs"), false, "the model has an input 'labels'"},
      {Onnx("cost", {"model.loss=output:cost", "data.train.labels=null"}), true},
      {Onnx("linear", {"data.train.labels=null"}), false, "name the file of its labels"},
      {Onnx("cost", {"model.loss=output:cost", kEval, "train.global_batch_size=6"}), true, "evaluate, 3 at a time"},
      {Onnx("by_batch", {kEval}), true, "computes with the number of samples in a batch"},
      {Onnx("by_batch", {kEval, "train.global_batch_size=6"}), false, "Evaluate a multiple of 3 samples"},
      // One setting settles what a file does not say.
      {Exported("stated/unseen"), true, "model.stop_gradient: [mean]"},
      {Exported("stated/unseen", {"model.stop_gradient=[mean]"}), true, "1 value behind which no gradient goes: mean",
       "torch.no_grad()"},
      {Exported("stated/unseen", {"model.stop_gradient=[nothing]"}), false, "matches 'nothing'"},
      {Late(), false, "model.constant_buffers: [average]"},
      {Late({"model.constant_buffers=[average]"}), true, "buffer constant: average"},
      {Exported("stated/averaging", {"model.constant_buffers=[average]"}), true, "buffer constant: average",
       "that forward changes"},
      {Exported("stated/one_norm"), true, "1 batch normalisation by statistics that stay: first"},
      {Exported("stated/one_norm", {"model.batch_norm=freeze"}), true,
       "2 batch normalisations by statistics that stay: first, second"},
      {Exported("stated/one_norm", {"model.batch_norm=[third]"}), false, "no batch normalisation matches 'third'"},
  };
}

std::vector<Setting> OfData() {
  return {
      {{"data.normalize={mean: 0.5, std: 2}"}, true},
      {{"data.train.inputs=images.npy", "data.augment.mixup=0.4"}, true},
      {{"data.train.inputs=images.npy", "data.transpose=[2, 0, 1]"}, true},
      {{"data.transpose=[2, 0, 1]"}},
      {OneFile("x.csv"), true},
      {OneFile("text.csv"), false, "text.csv"},
      {OneFile("x.npz"), true},
      {OneFile("unlabelled.npz"), false, "label_field"},
      {OneFile("x.tfrecord"), true},
      {OneFile("damaged.tfrecord"), false, "damaged.tfrecord"},
      {Onnx("two_inputs", OneFile("two.npz", {"data.train.label_field=classes"})), true},
      {Onnx("called_labels", {kEval}), true},
      {OneFile("two.npz", {"data.train.label_field=none"}), false, "there is no array 'none'"},
      {Tokens("tokens.bin"), true},
      {Tokens("tokens_beyond.bin"), false, "is 16, "},
      {{"data.train.labels=null", "data.train.format=npy"}},
      {{"data.train.sequence_length=4"}},
      {{"data.normalize={mean: [1, 2], std: [1, 2, 3]}"}},
      {{"data.train.inputs=nowhere.npy"}},
      {{"data.train.labels=nowhere.npy"}},
      {{"data.train.inputs=foreign"}},
      {{"data.train.inputs=short.npy"}},
      {{"data.train.inputs=few.npy"}},
      {{"data.train.labels=beyond.npy"}},
      {{"data.train.labels=below.npy"}},
      {{"data.train.labels=targets.npy"}},
      {{"data.train.labels=pairs.npy", "model.loss=mse"}},
      {{"data.eval={inputs: x.npy, labels: beyond.npy}"}},
      {{"data.eval={inputs: images.npy, labels: labels.npy}"}},
      {{"model.loss=mse", "model.builtin.classes=1", "data.train.labels=targets.npy",
        "data.eval={inputs: x.npy, labels: wide_targets.npy}"},
       false,
       "labels F32 [1], data.train of inputs F32 [12], labels F32 []"},
      {{"data.eval={inputs: nowhere.npy, labels: nowhere.npy}"}},
      {{"data.normalize={mean: [1, 2, 3, 4, 5], std: 1}"}},
      {{absl::StrCat("data.train.sha256=", std::string(64, 'a'))}},
      {{"data.memory=100B"}},
      // Numbers that are not finite.
      {{"data.train.inputs=nan.npy"},
       false,
       "element 17 is nan, the first of 1 that are not finite; the job would stop"},
      {{"data.train.labels=nan_targets.npy", "model.loss=mse", "model.builtin.classes=1"}},
      {{"data.train.inputs=masked.npy"}, false, "element 17 is -inf"},
      {{"data.train.inputs=nan.npy", "train.on_nan=skip_step"}, true, "element 17 is nan", "the job would stop"},
      {{"data.eval={inputs: nan.npy, labels: labels.npy}"}, true, "element 17 is nan", "the job would stop"},
      {Onnx("masked", {"data.train.inputs=masked.npy"}), true, "element 17 is -inf", "the job would stop"},
      {Onnx("masked", {"data.train.inputs=nan.npy"}), false, "the job would stop"},
      {Onnx("nan_aware", {"data.train.inputs=nan.npy"}), true, "element 17 is nan", "the job would stop"},
      {Onnx("nan_aware", {"data.train.labels=nan_scores.npy", "model.loss=mse"}), false, "the job would stop"},
  };
}

void Replace(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::vector<Setting> OfDirectories() {
  const auto untouched = [](const std::string&) {};
  return {
      {{}, true, ": goes on from step 0", "", untouched},
      {{"train.duration=9steps"}, true, ": goes on from step 0", "", untouched},
      {{"train.optimizer.lr=0.02"}, false, "train.optimizer.lr: 0.01 -> 0.02", "", untouched},
      {{"name=other"}, false, "belongs to the job 'corpus'", "", untouched},
      {{"checkpoint.resume=never"}, false, "checkpoint.resume: never", "", untouched},
      {{}, false, "chmod 600", "", [](const std::string& dir) { chmod((dir + "/chief/token").c_str(), 0644); }},
      {{}, false, "holds no token", "", [](const std::string& dir) { Replace(dir + "/chief/token", "short\n"); }},
      {{},
       false,
       "chief/lock is a symbolic link",
       "",
       [](const std::string& dir) {
         fs::rename(dir + "/chief/lock", dir + "/lock");
         fs::create_symlink("../lock", dir + "/chief/lock");
       }},
      {{}, true, "goes on", "", [](const std::string& dir) { fs::remove(dir + "/chief/token"); }},
      {{}, true, "goes on", "", [](const std::string& dir) { Replace(dir + "/latest", "step-00x"); }},
      {{}, true, "goes on", "", [](const std::string& dir) { fs::resize_file(dir + "/LOCKSTEP", 30); }},
      {{}, true, "goes on", "", [](const std::string& dir) { fs::remove(dir + "/LOCKSTEP"); }},
      {{}, false, "log is gone", "", [](const std::string& dir) { fs::remove_all(dir + "/log"); }},
      {{},
       false,
       "is missing, yet ",
       "",
       [](const std::string& dir) {
         fs::remove_all(dir + "/log");
         fs::remove(dir + "/LOCKSTEP");
       }},
  };
}

}  // namespace

std::string CorpusPath(const std::string& name) { return TheFiles().Path(name); }

const std::vector<Setting>& CorpusSettings() {
  static const std::vector<Setting> settings = [] {
    std::vector<Setting> all;
    for (std::vector<Setting> some : {OfTraining(), OfModels(), OfData(), OfDirectories()}) {
      all.insert(all.end(), std::make_move_iterator(some.begin()), std::make_move_iterator(some.end()));
    }
    return all;
  }();
  return settings;
}

}  // namespace lockstep::e2e
