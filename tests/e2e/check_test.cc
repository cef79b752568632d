// `lockstep check` and `lockstep run` agree, on real processes: what the one refuses the other refuses, with the same
// code and the same words, and whatever is wrong is told at once.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

constexpr size_t kTextColumn = 18;  // "error data        ..."

// What check calls an error.
std::vector<std::string> ErrorsOf(const std::string& output) {
  std::vector<std::string> errors;
  for (const absl::string_view line : absl::StrSplit(output, '\n')) {
    if (absl::StartsWith(line, "error ") && line.size() > kTextColumn) errors.emplace_back(line.substr(kTextColumn));
  }
  return errors;
}

std::string LastLine(const std::string& output) {
  const std::vector<std::string> lines = absl::StrSplit(output, '\n', absl::SkipEmpty());
  return lines.empty() ? "" : lines.back();
}

struct Refused {
  Words sets;
  int code;
  std::vector<std::string> words;  // one per error of check
};

// Each case in a directory of its own, unless one is given.
void CheckBoth(const std::vector<Refused>& cases, const std::string& given = "") {
  static int count = 0;
  for (const Refused& c : cases) {
    const std::string directory = given.empty() ? TempPath(absl::StrCat("both-", ++count)) : given;
    INFO(absl::StrJoin(c.sets, " "));
    const Result check = Run({"check", kJob, "--dir", directory}, c.sets);
    const Result run = Run({"run", kJob, "--workers", "1", "--dir", directory}, c.sets);
    INFO(check.output << run.output);
    CHECK(check.code == c.code);
    CHECK(run.code == c.code);
    const std::vector<std::string> errors = ErrorsOf(check.output);
    CHECK(errors.size() == c.words.size());
    for (size_t i = 0; i < std::min(errors.size(), c.words.size()); ++i) {
      CHECK_THAT(errors[i], Contains(c.words[i]));
      CHECK_THAT(run.output, Contains(errors[i]));
    }
    const std::string counted = absl::StrCat(errors.size(), errors.size() == 1 ? " error, " : " errors, ");
    CHECK(absl::StartsWith(LastLine(check.output), counted));
  }
}

Words With(Words more) {
  Words sets = {kInputs, kLabels};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

TEST_CASE("check: mistakes of the job file, its model and its data are told together, and run says them too", "[e2e]") {
  const std::string onnx = TempPath("no.onnx");
  Write(onnx, "this is no model");
  CheckBoth({
      {With({"train.optimiser=3", "train.seed=x", "model.loss=guess"}),
       kExitBadJob,
       {"--set train.optimiser=3", "--set train.seed=x", "--set model.loss=guess"}},
      {With({"train.seed=x", "model.builtin=null", absl::StrCat("model.onnx=", onnx), "data.train.inputs=/nowhere/a"}),
       kExitBadJob,
       {"train.seed: expected",
        "model.onnx: ", "--set data.train.inputs=/nowhere/a: data.train.inputs: data file /nowhere/a cannot"}},
      {With({"data.train.inputs=/nowhere/a", "data.eval={inputs: /nowhere/b, labels: /nowhere/c}"}),
       kExitBadData,
       {"data.train.inputs: data file /nowhere/a cannot", "data.eval.inputs: data file /nowhere/b cannot"}},
  });
}

TEST_CASE("check: a job that runs ends with no errors, and what is wrong by itself keeps its exit code", "[e2e]") {
  const Result good = Run({"check", kJob, "--dir", TempPath("good")}, Settings());
  INFO(good.output);
  CHECK(good.code == kExitDone);
  CHECK(ErrorsOf(good.output).empty());
  CHECK(absl::StartsWith(LastLine(good.output), "0 errors, "));
  CHECK_THAT(good.output, Contains("ok    memory"));

  CheckBoth({
      {With({"model.builtin.classes=7"}), kExitBadData, {"the model has the classes 0 to 6"}},
      {With({"model.loss=mse"}), kExitBadJob, {"`model.loss`"}},
      {With({"train.duration=10steps", "train.schedule.warmup=20steps"}), kExitBadJob, {"warmup"}},
  });
}

TEST_CASE("check: labels beyond the classes of an ONNX model, and a missing GPU, are errors as they are of a run",
          "[e2e]") {
  const std::string cnn = fs::absolute("tests/conformance/pytorch/import/cnn").string();
  const Words sets = {"model.builtin=null",
                      absl::StrCat("model.onnx=", cnn, ".onnx"),
                      "data.normalize=null",
                      absl::StrCat("data.train.inputs=", cnn, ".inputs.npy"),
                      absl::StrCat("data.train.labels=", cnn, ".labels.npy"),
                      "train.global_batch_size=8",
                      "train.logical_shards=4",
                      "train.duration=2steps"};
  const std::string directory = TempPath("imported");
  const Result good = Run({"check", kJob, "--dir", directory}, sets);
  INFO(good.output);
  CHECK(good.code == kExitDone);

  std::string labels = Read(cnn + ".labels.npy");
  const std::string path = TempPath("labels.npy");
  labels[labels.size() - 8] = 99;
  Write(path, labels);
  Words beyond = sets;
  beyond.push_back("data.train.labels=" + path);
  Words gpu = Settings();
  gpu.push_back("resources.device=cuda");
  Words memory = Settings();
  memory.push_back("resources.cpu_memory=4096B");
  setenv("LOCKSTEP_CUDA_LIBRARY", "/nowhere/liblockstep_cuda.so", 1);
  CheckBoth({{beyond, kExitBadData, {"is 99, the model has the classes 0 to 4"}},
             {gpu, kExitBadJob, {"/nowhere/liblockstep_cuda.so"}},
             {memory, kExitBadJob, {"resources.cpu_memory allows 4096"}}});
  unsetenv("LOCKSTEP_CUDA_LIBRARY");
}

TEST_CASE("check: a plan says of each node which implementations do not serve it, and why", "[e2e]") {
  const Result plain = Run({"check", kJob, "--plan", "--dir", TempPath("plain")}, Settings());
  INFO(plain.output);
  CHECK(plain.code == kExitDone);
  // Where oneDNN is slow, it is an own kernel that serves the node.
  CHECK_THAT(plain.output, !Contains("not by own kernels"));
  CHECK_THAT(plain.output,
             Contains("LossWeights reference\n          the op has no other implementation on this device"));

  const Result bf16 = Run({"check", kJob, "--plan", "--dir", TempPath("bf16")}, With({"train.precision=bf16"}));
  INFO(bf16.output);
  CHECK(bf16.code == kExitDone);
  CHECK_THAT(bf16.output, Contains("Relu widened:own:elementwise\n          not by own kernels for BF16: serves "
                                   "other element types"));
}

TEST_CASE("check: what files say of themselves cannot move the cursor", "[e2e]") {
  const Words named = With({"data.train.inputs=\"/nowhere/a\\e[2J\""});
  for (const Words& words : std::vector<Words>{{"check", kJob}, {"run", kJob, "--dir", TempPath("cursor")}}) {
    const Result result = Run(words, named);
    INFO(result.output);
    CHECK(result.code == kExitBadData);
    CHECK_THAT(result.output, Contains("/nowhere/a\\x1b[2J") && !Contains("\x1b"));
  }

  std::string model = Read("tests/conformance/pytorch/import/cnn.onnx");
  const size_t at = model.find("Relu");
  REQUIRE(at != std::string::npos);
  model[at + 1] = '\x1b';
  const std::string path = TempPath("cursor.onnx");
  Write(path, model);
  const Result ops = Run({"model", "ops", path});
  INFO(ops.output);
  CHECK(ops.code == kExitBadData);
  CHECK_THAT(ops.output, Contains("R\\x1blu") && !Contains("\x1b"));
  const Result missing = Run({"model", "ops", path + "\x1b"});
  CHECK_THAT(missing.output, Contains("\\x1b") && !Contains("\x1b"));
}

TEST_CASE("check: a directory that a run would refuse is an error, and check leaves it as it is", "[e2e]") {
  const std::string file = TempPath("afile");
  Write(file, "kept");
  CheckBoth({{Settings(), kExitStorage, {file + " is a file"}}}, file + "/job");
  CHECK(Read(file) == "kept");

  const std::string directory = CopyOfFinishedJob("looked");
  Words other = Settings(), rate = Settings(), never = Settings();
  other.push_back("name=other");
  rate.push_back("train.optimizer.lr=0.06");
  never.push_back("checkpoint.resume=never");
  CheckBoth({{other, kExitBadJob, {"belongs to the job"}},
             {rate, kExitBadJob, {"train.optimizer.lr: 0.05 -> 0.06"}},
             {never, kExitBadJob, {"checkpoint.resume: never"}}},
            directory);
  const Result goes_on = Run({"check", kJob, "--dir", directory}, Settings("30steps"));
  CHECK(goes_on.code == kExitDone);
  CHECK_THAT(goes_on.output, Contains("goes on from step 20"));
}

TEST_CASE("check: a directory in which a job runs, and a port that is taken, are errors", "[e2e]") {
  const std::string directory = TempPath("busy");
  Watched chief("busy", {"chief", kJob, "--dir", directory}, Settings());
  chief.WaitFor("listening on");
  std::string address = Read(directory + "/chief/address");
  address = address.substr(0, address.find('\n'));

  const Result busy = Run({"check", kJob, "--dir", directory, "--listen", address}, Settings());
  const Result second = Run({"chief", kJob, "--dir", directory}, Settings());
  const Result port = Run({"chief", kJob, "--dir", TempPath("port"), "--listen", address}, Settings());

  INFO(busy.output << second.output << port.output);
  const std::vector<std::string> errors = ErrorsOf(busy.output);
  REQUIRE(errors.size() == 2);
  CHECK(busy.code == kExitBadJob);
  CHECK_THAT(second.output, Contains(errors[0]));
  CHECK_THAT(port.output, Contains(errors[1]));
  CHECK(chief.process().Running());
  chief.process().Signal(SIGKILL);
}

}  // namespace
}  // namespace lockstep::e2e
