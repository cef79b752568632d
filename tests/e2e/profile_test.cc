// `lockstep profile` on a real job: what it prints and writes, and what it leaves alone.
#include <map>
#include <nlohmann/json.hpp>

#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

TEST_CASE("profile: every node is in the trace once per pass, and the job's directory stays untouched", "[e2e]") {
  const std::string trace = TempPath("job.trace.json");
  const std::string directory = TempPath("untouched");
  Words sets = Settings();
  sets.insert(sets.end(), {"checkpoint.dir=" + directory, "train.global_batch_size=64", "train.logical_shards=4",
                           "train.micro_batch=8"});
  const Words words = {"profile", kJob, "--steps", "2", "-o", trace};

  const Result first = Run(words, sets);
  const Result second = Run(words, sets);

  INFO(first.output);
  REQUIRE(first.code == kExitDone);
  CHECK_THAT(first.output, Contains("ConvGradWeight") && Contains("GFLOP/s") && Contains("samples/s") &&
                               Contains("matrix products and convolutions") && Contains("wrote " + trace));
  CHECK(second.code == kExitDone);
  CHECK_THAT(second.output, Contains("replaced " + trace));
  std::map<std::string, int> nodes;
  std::map<std::string, int> kinds;
  const auto parsed = nlohmann::json::parse(Read(trace));
  for (const auto& event : parsed["traceEvents"]) {
    if (event["ph"] != "X") continue;
    ++kinds[event["cat"]];
    if (event["cat"] == "step") continue;
    const bool kernel = event["args"].contains("kernel") && event["args"]["op"] != "(layout)";
    if (kernel && event["name"] != "sum of passes") ++nodes[event["name"]];
  }
  CHECK(nodes.size() >= 20);
  for (const auto& [node, runs] : nodes) {
    CAPTURE(node);
    CHECK(runs == 2 * 4 * 2);  // steps, logical shards, passes of each
  }
  for (const char* kind : {"data", "forward", "backward", "reduction", "update"}) {
    CAPTURE(kind);
    CHECK(kinds[kind] > 0);
  }
  CHECK(kinds["step"] == 2);
  CHECK_FALSE(fs::exists(directory));
  CHECK_FALSE(fs::exists(trace + ".partial"));
}

TEST_CASE("profile: what is wrong is said as by check, before anything is written", "[e2e]") {
  const std::string trace = TempPath("bad.trace.json");
  const std::string kept = TempPath("kept.json");
  Write(kept, "{}");
  const Words words = {"profile", kJob, "-o", trace};
  const std::vector<BadSetting> cases = {
      {"train.optimiser=3", kExitBadJob, "optimiser", "did you mean 'optimizer'"},
      {"model.loss=mse", kExitBadJob, "target is F32 [16]", "`model.loss`"},
      {"data.train.inputs=/nonexistent/images", kExitBadData, "/nonexistent/images", "No such file"},
      {"resources.cpu_memory=1MiB", kExitBadJob, "resources.cpu_memory", "raise"},
  };

  for (const BadSetting& bad : cases) {
    CAPTURE(bad.set);
    Words sets = Settings();
    sets.push_back(bad.set);
    const Result result = Run(words, sets);
    CHECK(result.code == bad.code);
    CHECK_THAT(result.output, Contains(bad.place) && Contains(bad.remedy));
  }
  const Result foreign = Run({"profile", kJob, "-o", kept}, Settings());
  CHECK(foreign.code == kExitStorage);
  CHECK_THAT(foreign.output, Contains(kept) && Contains("is no trace"));
  CHECK(Read(kept) == "{}");
  CHECK(Run({"profile", kJob, "--steps", "0"}).code == kExitUsage);
  CHECK_FALSE(fs::exists(trace));
}

TEST_CASE("profile: an account of a GPU that is not here needs none, and names what it assumes", "[e2e]") {
  Words sets = Settings();
  sets.insert(sets.end(), {"train.global_batch_size=64", "train.logical_shards=4", "train.precision=bf16"});

  const Result h100 = Run({"profile", kJob, "--model-of", "h100"}, sets);
  const Result shared = Run({"profile", kJob, "--model-of", "b200", "--workers", "4"}, sets);

  INFO(h100.output);
  REQUIRE(h100.code == kExitDone);
  CHECK_THAT(h100.output, Contains("ConvGradWeight") && Contains("cudnn:bf16-nhwc") && Contains("(update)") &&
                              Contains("total") && Contains("as of today:") && Contains("assumptions"));
  CHECK_THAT(h100.output, Contains("communication: none, of one worker"));
  CHECK(shared.code == kExitDone);
  CHECK_THAT(shared.output, Contains("64 samples on 4 workers") && Contains("leave a rank") && Contains("NCCL"));
  CHECK_FALSE(fs::exists("fashion-mnist-short.trace.json"));
}

TEST_CASE("profile: an account that cannot be meant is refused", "[e2e]") {
  const Result unknown = Run({"profile", kJob, "--model-of", "v100"}, Settings());
  CHECK(unknown.code == kExitUsage);
  CHECK_THAT(unknown.output, Contains("'v100'") && Contains("h100, h200, b200"));
  Words sets = Settings();
  sets.push_back("train.logical_shards=4");
  const Result many = Run({"profile", kJob, "--model-of", "h100", "--workers", "5"}, sets);
  CHECK(many.code == kExitUsage);
  CHECK_THAT(many.output, Contains("5 workers share 4 logical shards"));
  CHECK(Run({"profile", kJob, "--workers", "2"}).code == kExitUsage);
  CHECK(Run({"profile", kJob, "--model-of", "h100", "--steps", "2"}).code == kExitUsage);
}

}  // namespace
}  // namespace lockstep::e2e
