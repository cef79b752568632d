// `lockstep model` on real files: what it writes can be read, trained and trusted.
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("model: a built-in architecture that went through a file trains to the same bits", "[e2e]") {
  const std::string file = TempPath("new.onnx");

  const Result made = Run({"model", "new", "lenet", "--seed", "42", "-o", file}, {"input=[1, 28, 28]"});
  INFO(made.output);
  REQUIRE(made.code == kExitDone);
  const Result ops = Run({"model", "ops", file});
  CHECK(ops.code == kExitDone);
  CHECK_THAT(ops.output, Contains("trains 10 parameters"));

  Words sets = Settings();
  sets.insert(sets.end(), {"model.builtin=null", "model.onnx=" + file});
  const std::string directory = TempPath("from_file");
  const Result trained = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);
  INFO(trained.output);
  REQUIRE(trained.code == kExitDone);
  CHECK(Digest(directory) == Digest(FinishedJob()));
}

TEST_CASE("model: the trained model of a job is exported and can be read again", "[e2e]") {
  const std::string file = TempPath("trained.onnx");

  const Result made = Run({"model", "export", FinishedJob(), "-o", file, "--step", "10"});
  const Result missing = Run({"model", "export", FinishedJob(), "-o", TempPath("none.onnx"), "--step", "11"});

  INFO(made.output);
  CHECK(made.code == kExitDone);
  CHECK_THAT(made.output, Contains("step-000000010") && Contains("opset 20") && Contains("mean 0.286, std 0.353"));
  CHECK(Run({"model", "ops", file}).code == kExitDone);
  CHECK(missing.code == kExitStorage);
  CHECK_THAT(missing.output, Contains("11"));
  CHECK_FALSE(fs::exists(TempPath("none.onnx")));
}

TEST_CASE("model: settings that do not fit are named, and nothing is written", "[e2e]") {
  const std::string file = TempPath("bad.onnx");
  const Words gpt2 = {"model", "new", "gpt2", "-o", file};

  const Result uneven = Run(gpt2, {"heads=5"});
  const Result long_one = Run(gpt2, {"input=[65536]", "context=65536"});
  const Result unknown = Run({"model", "new", "gpt3", "-o", file});
  const Result shapeless = Run({"model", "new", "resnet18", "-o", file});
  const Result homeless = Run({"model", "new", "gpt2", "-o", TempPath("no") + "/such.onnx"}, {"layers=1", "width=12"});

  CHECK(uneven.code == kExitBadJob);
  CHECK_THAT(uneven.output, Contains("5 heads do not divide the width 768"));
  CHECK(long_one.code == kExitBadJob);
  CHECK_THAT(long_one.output, Contains("has 65536 tokens; at most 8192"));
  CHECK(unknown.code == kExitBadJob);
  CHECK_THAT(unknown.output, Contains("found 'gpt3'") && Contains("did you mean 'gpt2'"));
  CHECK(shapeless.code == kExitBadJob);
  CHECK_THAT(shapeless.output, Contains("input=[3, 224, 224]"));
  CHECK(homeless.code == kExitStorage);
  CHECK_FALSE(fs::exists(file));
  CHECK_FALSE(fs::exists(file + ".partial"));
}

TEST_CASE("model: a file that is no model ends with 65", "[e2e]") {
  const std::string file = TempPath("text.onnx");
  Write(file, "no model");

  const Result ops = Run({"model", "ops", file});

  CHECK(ops.code == kExitBadData);
  CHECK_THAT(ops.output, Contains("is not an ONNX model"));
}

}  // namespace
}  // namespace lockstep::e2e
