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

}  // namespace
}  // namespace lockstep::e2e
