// `lockstep eval` and `lockstep predict` on real jobs. What they give is held against what the job said itself, and
// against each other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/small_onnx.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;
using nlohmann::json;

constexpr char kTestInputs[] = "/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz";
constexpr char kTestLabels[] = "/usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz";
constexpr int64_t kTestSamples = 10000;
constexpr size_t kTestClasses = 10;

// A job that evaluates at its end, made once.
const std::string& EvaluatedJob() {
  static const std::string directory = [] {
    const std::string made = TempPath("evaluated");
    Words sets = Settings();
    sets.push_back(absl::StrCat("data.eval={inputs: ", kTestInputs, ", labels: ", kTestLabels, "}"));
    sets.push_back("eval.metric=loss");
    const Result result = Run({"run", kJob, "--workers", "1", "--dir", made}, sets);
    if (result.code != kExitDone) throw std::runtime_error(result.output);
    return made;
  }();
  return directory;
}

json Evaluated(const Words& words) {
  Words all = words;
  all.push_back("--json");
  const Result result = Run(all);
  INFO(result.output);
  REQUIRE(result.code == kExitDone);
  // The last line: logs go to standard error, which is the same here.
  return json::parse(result.output.substr(result.output.rfind('\n', result.output.size() - 2) + 1));
}

// The rows of an npy file of float32 [kTestSamples, columns].
std::vector<float> RowsIn(const std::string& path, size_t columns = kTestClasses) {
  const std::string bytes = Read(path);
  REQUIRE_THAT(bytes.substr(0, 128), Contains("'<f4'") && Contains(absl::StrCat("(10000, ", columns, ")")));
  const size_t size = kTestSamples * columns * sizeof(float);
  REQUIRE(bytes.size() > size);
  std::vector<float> rows(kTestSamples * columns);
  std::memcpy(rows.data(), bytes.data() + bytes.size() - size, size);
  return rows;
}

std::string Labels() {
  std::string bytes;
  FILE* const pipe = popen(absl::StrCat("zcat ", kTestLabels).c_str(), "r");
  for (int c = fgetc(pipe); c != EOF; c = fgetc(pipe)) bytes.push_back(static_cast<char>(c));
  pclose(pipe);
  return bytes.substr(8);
}

}  // namespace

TEST_CASE("eval: a finished job's figures are those that it wrote, to the last bit", "[e2e]") {
  const std::string& directory = EvaluatedJob();
  const json manifest = json::parse(Read(directory + "/checkpoints/step-000000020/manifest.json"));

  const json figures = Evaluated({"eval", directory});

  CHECK(figures["step"] == 20);
  CHECK(figures["samples"] == kTestSamples);
  CHECK(figures["loss"].get<double>() == manifest["evaluations"]["value"].get<double>());
  CHECK(Evaluated({"eval", directory, "--step", "10"})["accuracy"] != figures["accuracy"]);
  // A job that evaluates nothing, on the files of the command line.
  const Words other = {"eval", FinishedJob()};
  const Result none = Run(other);
  CHECK(none.code == kExitBadJob);
  CHECK_THAT(none.output, Contains("--inputs"));
  Words with_files = other;
  with_files.insert(with_files.end(), {"--inputs", kTestInputs, "--labels", kTestLabels});
  const json same = Evaluated(with_files);
  CHECK(same["loss"] == figures["loss"]);
  CHECK(same["accuracy"] == figures["accuracy"]);
}

TEST_CASE("eval: a loss of all samples of a pass is that of the job, and the rows of the last ones their own",
          "[e2e]") {
  const std::string directory = TempPath("contrast"), model = TempPath("contrast.onnx");
  WriteContrast(model);
  Words sets = Settings();
  sets.insert(sets.end(), {"model.builtin=null", absl::StrCat("model.onnx=", model), "model.loss=output:cost",
                           "data.train.labels=null", absl::StrCat("data.eval={inputs: ", kTestInputs, "}"),
                           "train.global_batch_size=56", "train.optimizer.lr=0.001", "eval.metric=loss"});
  const Result trained = Run({"run", kJob, "--workers", "2", "--dir", directory}, sets);
  INFO(trained.output);
  REQUIRE(trained.code == kExitDone);
  const json manifest = json::parse(Read(directory + "/checkpoints/step-000000020/manifest.json"));

  const json figures = Evaluated({"eval", directory});

  CHECK(figures["loss"].get<double>() == manifest["evaluations"]["value"].get<double>());
  // The mean over the passes of 14 samples and the last one of 4, computed here from the rows.
  const std::string path = TempPath("y.npy");
  const Result predicted = Run({"predict", directory, "--of", "y", "-o", path});
  INFO(predicted.output);
  REQUIRE(predicted.code == kExitDone);
  const std::vector<float> rows = RowsIn(path, 4);
  double sum = 0;
  for (size_t first = 0; first < kTestSamples; first += 14) {
    const size_t count = std::min<size_t>(14, kTestSamples - first);
    double squares = 0;
    for (size_t i = first; i < first + count; ++i) {
      for (size_t j = first; j < first + count; ++j) {
        double product = 0;
        for (size_t c = 0; c < 4; ++c) product += double{rows[i * 4 + c]} * double{rows[j * 4 + c]};
        squares += (product - 1) * (product - 1);
      }
    }
    sum += squares / static_cast<double>(count);
  }
  CHECK(figures["loss"].get<double>() == Approx(sum / kTestSamples).epsilon(1e-5));
}

TEST_CASE("eval: --details gives figures of each class that add up to the accuracy", "[e2e]") {
  const json figures = Evaluated({"eval", EvaluatedJob(), "--details"});

  REQUIRE(figures["classes"].size() == kTestClasses);
  REQUIRE(figures["confusion"].size() == kTestClasses);
  int64_t labels = 0, correct = 0;
  for (size_t c = 0; c < kTestClasses; ++c) {
    const json& row = figures["classes"][c];
    labels += row["labels"].get<int64_t>();
    correct += row["correct"].get<int64_t>();
    CHECK(figures["confusion"][c][c] == row["correct"]);
    CHECK(row["auc"].get<double>() > 0.5);
  }
  CHECK(labels == kTestSamples);
  CHECK(static_cast<double>(correct) / kTestSamples == figures["accuracy"].get<double>());
  const Result table = Run({"eval", EvaluatedJob(), "--details"});
  CHECK_THAT(table.output, Contains("precision  recall") && Contains("accuracy"));
}

TEST_CASE("eval: the model of a job file as it begins is that of the directory's step 0", "[e2e]") {
  Words words = {"eval", kJob};
  for (const std::string& set : Settings()) words.insert(words.end(), {"--set", set});
  words.insert(words.end(), {"--inputs", kTestInputs, "--labels", kTestLabels});
  const json begins = Evaluated(words);

  const json step_0 = Evaluated({"eval", EvaluatedJob(), "--step", "0"});

  CHECK(begins["step"] == 0);
  CHECK(begins["loss"].get<double>() == Approx(step_0["loss"].get<double>()).epsilon(1e-5));
  CHECK(begins["accuracy"].get<double>() == Approx(step_0["accuracy"].get<double>()).margin(1e-3));
  words.insert(words.end(), {"--step", "3"});
  CHECK(Run(words).code == kExitUsage);
}

TEST_CASE("predict: the rows give the accuracy and the loss of the evaluation", "[e2e]") {
  const std::string path = TempPath("scores.npy");
  const Result made = Run({"predict", EvaluatedJob(), "-o", path});
  INFO(made.output);
  REQUIRE(made.code == kExitDone);
  CHECK_THAT(made.output, Contains("10000 predictions") && Contains("F32[10]"));

  const std::vector<float> rows = RowsIn(path);
  const std::string labels = Labels();
  double loss = 0;
  int64_t correct = 0;
  for (size_t i = 0; i < labels.size(); ++i) {
    const float* const row = &rows[i * kTestClasses];
    const auto label = static_cast<size_t>(labels[i]);
    correct += std::max_element(row, row + kTestClasses) - row == labels[i] ? 1 : 0;
    double total = 0;
    for (size_t c = 0; c < kTestClasses; ++c) total += std::exp(double{row[c]} - row[label]);
    loss += std::log(total);
  }

  const json figures = Evaluated({"eval", EvaluatedJob()});
  CHECK(static_cast<double>(correct) / kTestSamples == figures["accuracy"].get<double>());
  CHECK(loss / kTestSamples == Approx(figures["loss"].get<double>()).epsilon(1e-6));
}

TEST_CASE("predict: processes that are killed leave what they did; who comes later finishes the same file", "[e2e]") {
  const std::string whole = TempPath("whole.npy");
  REQUIRE(Run({"predict", EvaluatedJob(), "-o", whole}).code == kExitDone);
  const std::string path = TempPath("killed.npy");
  const auto pieces = [&] {
    std::error_code gone;
    int64_t count = 0;
    for (const auto& entry : fs::directory_iterator(path + ".parts", gone)) {
      count += entry.path().extension() == ".rows" ? 1 : 0;
    }
    return count;
  };

  for (int64_t least = 1; least <= 9; least += 4) {
    Watched first(absl::StrCat("first", least), {"predict", EvaluatedJob(), "-o", path});
    Watched second(absl::StrCat("second", least), {"predict", EvaluatedJob(), "-o", path});
    WaitUntil("some pieces are there", [&] { return pieces() >= least || fs::exists(path); });
    first.process().Signal(SIGKILL);
    second.process().Signal(SIGKILL);
    first.process().Wait(kLimit);
    second.process().Wait(kLimit);
    if (least == 1) CHECK_FALSE(fs::exists(path));  // else nothing was cut short
  }
  if (!fs::exists(path) || fs::exists(path + ".parts")) {
    const Result finished = Run({"predict", EvaluatedJob(), "-o", path, "--workers", "3"});
    INFO(finished.output);
    REQUIRE(finished.code == kExitDone);
  }

  CHECK(Read(path) == Read(whole));
  CHECK_FALSE(fs::exists(path + ".parts"));
}

TEST_CASE("predict: what does not fit is told, and nothing is overwritten", "[e2e]") {
  const std::string path = TempPath("taken.npy");
  Write(path, "mine");
  const Words words = {"predict", EvaluatedJob(), "-o"};
  const auto with = [&](const Words& more) {
    Words all = words;
    all.insert(all.end(), more.begin(), more.end());
    return Run(all);
  };

  const Result taken = with({path});
  const Result unknown = with({TempPath("a.npy"), "--of", "nothing"});
  const Result missing = with({TempPath("b.npy"), "--inputs", TempPath("missing.npy")});
  const Result homeless = with({TempPath("no") + "/such.npy"});
  const Result no_tokens = with({TempPath("d.npy"), "--tokens", TempPath("missing.bin")});
  const Result evaluates_none = Run({"predict", FinishedJob(), "-o", TempPath("c.npy")});

  CHECK(taken.code == kExitStorage);
  CHECK_THAT(taken.output, Contains("is there already"));
  CHECK(Read(path) == "mine");
  CHECK(unknown.code == kExitBadJob);
  CHECK_THAT(unknown.output, Contains("no output 'nothing'; it has "));
  CHECK(missing.code == kExitBadData);
  CHECK_THAT(missing.output, Contains("missing.npy"));
  CHECK(homeless.code == kExitStorage);
  CHECK(no_tokens.code == kExitBadJob);
  CHECK_THAT(no_tokens.output, Contains("--tokens is for a job that reads tokens"));
  CHECK(evaluates_none.code == kExitBadJob);
  CHECK_THAT(evaluates_none.output, Contains("--inputs"));
  for (const char* const name : {"a.npy", "b.npy", "c.npy"}) CHECK_FALSE(fs::exists(TempPath(name)));
}

}  // namespace lockstep::e2e
