// What a run will do to a model stands in the output of `check` and in the first lines of a chief, on real processes.
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

constexpr char kHint[] = "A file does not say requires_grad=False";

// A model that PyTorch exported and its data. `name`: "stated/detached".
Words Exported(const std::string& name, const Words& more = {}) {
  const std::string file = fs::absolute("tests/conformance/pytorch/" + name).string();
  Words sets = {"model.builtin=null",
                "model.onnx=" + file + ".onnx",
                "data.normalize=null",
                "data.train.inputs=" + file + ".inputs.npy",
                "data.train.labels=" + file + ".labels.npy",
                "train.global_batch_size=8",
                "train.logical_shards=2",
                "train.duration=2steps"};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

struct Said {
  Words sets;
  std::vector<std::string> lines;
  std::vector<std::string> never = {};
};

TEST_CASE("account: check and the chief say what is trained, kept, constant, tied, and where gradients stop", "[e2e]") {
  const std::vector<Said> cases = {
      {Exported("stated/detached"),
       {"4 of 6 parameters, 83 values", "2 parameters that no gradient reaches: target.weight, target.bias", kHint,
        "behind which no gradient goes"},
       {"by model.trainable and model.frozen"}},
      {Exported("stated/detached", {"model.frozen=[a.*]"}),
       {"2 of 6 parameters, 27 values: b.weight, b.bias", "2 parameters by model.trainable and model.frozen: a.weight",
        "2 parameters that no gradient reaches: target.weight, target.bias"},
       {kHint}},
      {Exported("stated/unseen"), {"torch.no_grad()", "model.stop_gradient: [mean]", "all 4 parameters"}},
      {Exported("stated/averaging"), {"1 buffer that forward changes"}, {"constant: average"}},
      {Exported("stated/tables"),
       {"1 buffer constant: positions", "1 parameter under a second name: embedding.weight (head.weight)"}},
      {Exported("import/mlp", {"model.onnx=" + fs::absolute("tests/conformance/pytorch/import/mlp_older.onnx").string(),
                               "train.global_batch_size=32", "train.logical_shards=1"}),
       {"a file exported so has no trace of detach()"}},
  };
  int count = 0;
  for (const Said& said : cases) {
    const std::string directory = TempPath(absl::StrCat("account-", ++count));
    const Result check = Run({"check", kJob, "--dir", directory}, said.sets);
    CHECK(check.code == kExitDone);
    Watched chief(absl::StrCat("account-", count), {"chief", kJob, "--dir", directory}, said.sets);
    chief.WaitFor("listening on");
    chief.process().Signal(SIGTERM);
    CHECK(chief.End() == Ended{kExitPreempted, 0});
    for (const std::string& output : {check.output, chief.Output()}) {
      INFO(output);
      for (const std::string& line : said.lines) CHECK_THAT(output, Contains(line));
      for (const std::string& text : said.never) CHECK_THAT(output, !Contains(text));
    }
  }
}

}  // namespace
}  // namespace lockstep::e2e
