// What a model's file says about training is obeyed, and what it does not say is asked for: models whose parts do not
// train, from files that stated_models.py makes, against PyTorch's own losses and weights.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/graph/moved_statistics.h"
#include "tests/conformance/pytorch/imported_training.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

const std::string kFolder = "tests/conformance/pytorch/stated/";

struct Case {
  std::string name;
  OnnxImportOptions options;
  std::string account;                    // what the account has to contain
  std::string warning;                    // what the warnings have to contain; empty: there are none
  std::vector<std::string> missing = {};  // of the state dict: what the file does not hold
};

std::string Account(const Training& training) {
  std::vector<std::string> lines;
  for (const AccountLine& line : DescribeTraining(training.metagraph(), &training.model().notes)) {
    lines.push_back(line.what + ": " + line.text);
  }
  return absl::StrJoin(lines, "\n");
}

OnnxImportOptions WithSetting(std::vector<std::string> OnnxImportOptions::*setting, std::vector<std::string> value) {
  OnnxImportOptions options;
  options.*setting = std::move(value);
  return options;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  cases.push_back({"detached", {}, "kept: 2 parameters that no gradient reaches: target.weight, target.bias", ""});
  cases.push_back(
      {"unseen", WithSetting(&OnnxImportOptions::stop_gradient, {"mean"}), "behind which no gradient goes: mean", ""});
  cases.push_back({"one_norm", {}, "1 batch normalisation by statistics that stay: first", ""});
  cases.push_back({"norms_eval", {}, "2 batch normalisations by statistics that stay: first, second", ""});
  cases.push_back({"untracked", {}, "1 batch normalisation by the batch", ""});
  cases.push_back({"spectral", {}, "buffers: 2 buffers that forward changes", ""});
  cases.push_back({"averaging", {}, "buffers: 1 buffer that forward changes", ""});
  cases.push_back({"tables",
                   {},
                   "all 1 parameter, 56 values",
                   "does not hold the parameters unused.bias, unused.weight:",
                   {"unused.bias", "unused.weight"}});
  cases.push_back({"tracked",
                   {},
                   "trained: all 6 parameters",
                   "does not hold the buffers norm.running_mean, norm.running_var:",
                   {"norm.running_mean", "norm.running_var"}});
  // Equal tensors of new layers train apart; those of one parameter train as one.
  cases.push_back({"alike_plain", {}, "trained: all 13 parameters", ""});
  cases.push_back({"noted",
                   {},
                   "kept: 2 parameters by requires_grad=False in the file, or by the job: a.weight, a.bias",
                   "parameter 'unused.weight' has no influence"});
  OnnxImportOptions older;
  older.batch_norm = {"train"};
  older.tied = {{"c.weight", "b.weight"}};
  cases.push_back({"alike_older", older, "2 batch normalisations by the batch", ""});
  return cases;
}

TEST_CASE("import: parts that do not train stay, and train nothing, as in PyTorch", "[onnx][pytorch]") {
  const std::vector<Case> cases = Cases();
  const size_t index = GENERATE_COPY(range(size_t{0}, cases.size()));
  const Case& tested = cases.at(index);
  CAPTURE(tested.name);
  const Golden golden = ReadGolden(kFolder + tested.name);
  REQUIRE(golden.losses.size() == kSteps);
  Training training(kFolder + tested.name, kFolder + tested.name, tested.options, golden, device::DeviceKind::kCpu);
  const std::string warnings = absl::StrJoin(training.model().warnings, "\n");

  const Trained trained = Train(training, golden);

  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(step);
    CHECK(trained.losses[step] == Approx(golden.losses[step]).epsilon(1e-3).margin(1e-5));
  }
  for (const auto& [key, expected] : golden.tensors) {
    CAPTURE(key);
    const bool missing = std::count(tested.missing.begin(), tested.missing.end(), key) != 0;
    REQUIRE(trained.tensors.count(key) == (missing ? 0 : 1));
    if (missing) continue;
    CHECK(trained.tensors.at(key).sum == Approx(expected.sum).margin(2e-3 * (1 + expected.norm)));
    CHECK(trained.tensors.at(key).norm == Approx(expected.norm).epsilon(2e-3).margin(1e-6));
  }
  CHECK(trained.tensors.size() == golden.tensors.size() - tested.missing.size());
  CHECK_THAT(Account(training), Contains(tested.account));
  CHECK_THAT(warnings, Contains(tested.warning));
  CHECK(warnings.empty() == tested.warning.empty());
}

absl::StatusOr<ImportedModel> Import(const std::string& name, OnnxImportOptions options) {
  options.evaluate = device::EvaluateNode;
  options.batch = 8;
  return ImportOnnx(ReadOnnxFile(kFolder + name + ".onnx").value(), options);
}

TEST_CASE("import: a block that may be torch.no_grad() is named, with the setting that says so", "[onnx][pytorch]") {
  const absl::StatusOr<ImportedModel> model = Import("unseen", {});

  REQUIRE(model.ok());
  REQUIRE(model->warnings.size() == 1);
  CHECK_THAT(model->warnings[0], Contains("torch.no_grad()") && Contains("model.stop_gradient: [mean]"));
}

TEST_CASE("import: a buffer whose new value the exporter left out is refused, or constant by a setting",
          "[onnx][pytorch]") {
  const absl::StatusOr<ImportedModel> refused = Import("late", {});
  const absl::StatusOr<ImportedModel> constant =
      Import("late", WithSetting(&OnnxImportOptions::constant_buffers, {"average"}));

  REQUIRE_FALSE(refused.ok());
  CHECK_THAT(std::string(refused.status().message()), Contains("model.constant_buffers: [average]"));
  REQUIRE(constant.ok());
  CHECK(MovedStatistics(constant->graph).empty());
}

TEST_CASE("import: a parameter that the model changes itself is refused by name", "[onnx][pytorch]") {
  const absl::StatusOr<ImportedModel> model = Import("clamped", {});

  REQUIRE_FALSE(model.ok());
  CHECK_THAT(std::string(model.status().message()), Contains("changes the parameter 'a.weight' itself"));
}

TEST_CASE("import: patterns that match nothing in the file are refused with a name that would", "[onnx][pytorch]") {
  const auto message = [](const std::string& name, const OnnxImportOptions& options) {
    return std::string(Import(name, options).status().message());
  };

  CHECK_THAT(message("one_norm", WithSetting(&OnnxImportOptions::batch_norm, {"third"})),
             Contains("model.batch_norm: no batch normalisation matches 'third'") && Contains("'first'"));
  CHECK_THAT(message("unseen", WithSetting(&OnnxImportOptions::stop_gradient, {"nowhere*"})),
             Contains("model.stop_gradient: no value of the file matches 'nowhere*'"));
  CHECK_THAT(message("averaging", WithSetting(&OnnxImportOptions::constant_buffers, {"mean"})),
             Contains("model.constant_buffers: no buffer that changes matches 'mean'") && Contains("'average'"));
}

std::vector<std::string> Moving(const ImportedModel& model) {
  std::vector<std::string> moving;
  for (const Variable& variable : model.graph.variables) {
    if (variable.kind == VariableKind::kStatistic) moving.push_back(variable.name);
  }
  return moving;
}

TEST_CASE("import: model.batch_norm overrides what the file says of batch normalisations", "[onnx][pytorch]") {
  const auto moving = [](std::vector<std::string> chosen) {
    return Moving(Import("one_norm", WithSetting(&OnnxImportOptions::batch_norm, std::move(chosen))).value());
  };

  CHECK(moving({}) == std::vector<std::string>{"second.running_mean", "second.running_var"});
  CHECK(moving({"train"}).size() == 4);
  CHECK(moving({"freeze"}).empty());
  CHECK(moving({"s*"}).empty());
}

}  // namespace
}  // namespace lockstep::worker
