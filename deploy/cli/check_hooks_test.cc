#include "deploy/cli/check_hooks.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep::cli {
namespace {

constexpr char kHookedJob[] =
    "name: small\n"
    "model: {builtin: {name: lenet}}\n"
    "data: {train: {inputs: x, labels: y}}\n"
    "train: {duration: 10ep, global_batch_size: 100, logical_shards: 4, optimizer: {lr: 0.1}}\n";

std::vector<std::string> Said(const std::string& hooks) {
  const auto job = ParseJob(absl::StrCat(kHookedJob, "hooks: [", hooks, "]\n"), "/jobs/job.yaml");
  INFO(job.status());
  REQUIRE(job.ok());
  Findings findings;
  CheckHooks(*job, /*epoch_samples=*/1000, /*end_step=*/100, findings);
  std::vector<std::string> said;
  for (const Finding& finding : findings.all()) {
    said.push_back(absl::StrCat(finding.gravity == Gravity::kWarning ? "warning " : "", finding.text));
  }
  return said;
}

using Lines = std::vector<std::string>;

TEST_CASE("check: each hook is told with when it fires and what it does", "[hooks]") {
  CHECK(Said("{name: a, step: 5, stop: true}") == Lines{"a, at step 5: stops the job"});
  CHECK(Said("{name: a, every: 2ep, run: [sh, -c, ls]}") == Lines{"a, every 2ep (20 steps): runs sh -c ls"});
  CHECK(Said("{name: a, every: 30s, stop: true}") == Lines{"a, every 30s: stops the job"});
  CHECK(Said("{name: a, on: end, run: sh}") == Lines{"a, when the job ends: runs sh"});
}

TEST_CASE("check: a hook that never fires, and a command that is not here, are warnings", "[hooks]") {
  CHECK(Said("{name: a, step: 101, stop: true}")[1] == "warning a: never fires, because the job ends at step 100");
  CHECK(Said("{name: a, step: 5, run: ./no-such}")[1] ==
        "warning a: the command /jobs/no-such is not on this machine; the chief's needs it");
  CHECK(Said("{name: a, step: 5, run: no-such-command}").size() == 2);
}

}  // namespace
}  // namespace lockstep::cli
