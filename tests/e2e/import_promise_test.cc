// The promise for models that a job brings along, as PyTorch exported them: token inputs, a tied weight, batch
// statistics, a buffer that the model moves itself, branches by conditions, loops, random numbers. Files and data are
// those that the conformance of imports trains on.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <tuple>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/check_corpus.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

std::vector<std::string> ImportSettings(const std::string& model, int steps, int batch, const std::string& precision) {
  const std::string kind = model == "averaging" ? "stated/" : model == "noisy" ? "random/" : "import/";
  const std::string folder = absl::StrCat("tests/conformance/pytorch/", kind);
  const std::string file = std::filesystem::absolute(absl::StrCat(folder, model)).string();
  std::vector<std::string> settings = {"model.builtin=null",
                                       absl::StrCat("model.onnx=", file, ".onnx"),
                                       "data.normalize=null",
                                       absl::StrCat("data.train.inputs=", file, ".inputs.npy"),
                                       absl::StrCat("data.train.labels=", file, ".labels.npy"),
                                       absl::StrCat("train.global_batch_size=", batch),
                                       absl::StrCat("train.duration=", steps, "steps"),
                                       "train.logical_shards=4",
                                       "train.optimizer.lr=0.01",
                                       "checkpoint.every=15steps",
                                       absl::StrCat("train.precision=", precision)};
  // Updates by norms of whole parameters; adafactor's slots have shapes of their own.
  if (model == "averaging") {
    settings.insert(settings.end(),
                    {"train.optimizer={name: lamb, no_decay: \"*bias\"}", "train.optimizer.momentum=null"});
  }
  if (model == "decides") {
    settings.insert(settings.end(),
                    {"train.optimizer={name: adafactor, weight_decay: 0.01}", "train.optimizer.momentum=null"});
  }
  if (model == "gpt2") settings.push_back("model.tied={wte.weight: lm_head.weight}");
  // Its evaluations draw, too; an optimizer with two slots, and a rate that follows the whole job.
  if (model == "noisy") {
    settings.insert(settings.end(),
                    {"train.optimizer={name: rmsprop, lr: 0.001, momentum: 0.5}", "train.schedule={name: one_cycle}"});
    settings.insert(settings.end(), {absl::StrCat("data.eval.inputs=", file, ".inputs.npy"),
                                     absl::StrCat("data.eval.labels=", file, ".labels.npy"), "eval.every=10steps"});
  }
  return settings;
}

TEST_CASE("promise: imported models keep it with workers killed and a chief that begins again", "[e2e]") {
  // So many steps that the job is not over, on any machine, before it is killed in the middle.
  const auto [model, steps, batch, precision] = GENERATE(
      std::tuple("gpt2", 150, 4, "fp32"), std::tuple("cnn", 600, 32, "fp32"), std::tuple("cnn", 600, 32, "bf16"),
      std::tuple("averaging", 1200, 8, "fp32"), std::tuple("decides", 1500, 32, "fp32"),
      std::tuple("loops", 600, 32, "fp32"), std::tuple("noisy", 1500, 8, "fp32"));
  CAPTURE(model, precision);
  LocalJob undisturbed(absl::StrCat("undisturbed.", model, ".", precision), kJob,
                       ImportSettings(model, steps, batch, precision));
  undisturbed.RunUndisturbed(1);

  LocalJob job(absl::StrCat("killed.", model, ".", precision), kJob, ImportSettings(model, steps, batch, precision));
  job.StartChief(3);
  for (int i = 0; i < 3; ++i) job.StartWorker(i);
  job.WaitForStep(20);
  job.Kill("worker-1");
  job.StartWorker(1);
  job.WaitForStatus("a save in the middle", [](const proto::StatusReply& s) { return s.published_step() >= 30; });
  job.KillEverything();
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1"}) CHECK(job.WaitForEnd(worker) == Ended{});

  CHECK(job.Digest() == undisturbed.Digest());
  job.ReplayRecords();
  if (model == std::string("gpt2")) {
    std::string text, again;
    const std::vector<std::string> sample = {"model", "sample", job.directory(), "--prompt", "ab", "--tokens", "40"};
    CHECK(LocalJob::RunCommand(sample, &text) == Ended{});
    CHECK(LocalJob::RunCommand(sample, &again) == Ended{});
    CHECK(text == again);
    CHECK(text.size() > 40);
  }
  // Names that the exporter dropped, and the buffer, are in what comes home.
  const std::map<std::string, std::string> names = {{"gpt2", "wte.weight"},     {"cnn", "bn.num_batches_tracked"},
                                                    {"averaging", "average"},   {"decides", "cold.weight"},
                                                    {"loops", "refine.weight"}, {"noisy", "latent.weight"}};
  const std::string& dropped = names.at(model);
  bool found = false;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(job.directory() + "/checkpoints")) {
    if (entry.path().extension() != ".safetensors") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::string head(1 << 16, '\0');  // the header of names lies in front
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    found = found || absl::StrContains(head, absl::StrCat("\"", dropped, "\""));
  }
  CHECK(found);
}

// The digest at the end of a job on the corpus's samples, with so many workers.
std::string DigestOf(const std::string& model, const std::vector<std::string>& data, int workers) {
  std::vector<std::string> settings = {
      "model.builtin=null",     absl::StrCat("model.onnx=", CorpusPath(model + ".onnx")),
      "data.normalize=null",    "train.global_batch_size=8",
      "train.logical_shards=2", "train.duration=40steps",
      "train.optimizer.lr=0.1"};
  settings.insert(settings.end(), data.begin(), data.end());
  LocalJob job(absl::StrCat(model, ".", workers), kJob, settings);
  job.RunUndisturbed(workers);
  return job.Digest();
}

TEST_CASE("promise: an input called labels is fed by its data, not by the labels, on any number of workers", "[e2e]") {
  const std::vector<std::string> one = {absl::StrCat("data.train.inputs=", CorpusPath("x.npy")),
                                        absl::StrCat("data.train.labels=", CorpusPath("labels.npy"))};
  const std::string digest = DigestOf("linear", one, 1);
  CHECK(DigestOf("called_labels", one, 1) == digest);
  CHECK(DigestOf("called_labels", one, 2) == digest);

  const auto npz = [](const std::string& name) -> std::vector<std::string> {
    return {absl::StrCat("data.train.inputs=", CorpusPath(name)), "data.train.labels=null",
            "data.train.label_field=classes"};
  };
  const std::string of_two = DigestOf("two_others", npz("two_others.npz"), 1);
  CHECK(of_two != digest);
  CHECK(DigestOf("two_inputs", npz("two.npz"), 1) == of_two);
  CHECK(DigestOf("two_inputs", npz("two.npz"), 2) == of_two);
}

}  // namespace
}  // namespace lockstep::e2e
