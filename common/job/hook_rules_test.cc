// Hooks in a job file: how they are read, printed and compared, and which are refused.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/job/job.h"
#include "common/job/job_test_util.h"
#include "google/protobuf/util/message_differencer.h"

namespace lockstep {
namespace {

std::string WithHooks(const std::string& hooks) { return absl::StrCat(kJob, "hooks:\n", hooks); }

std::string Mistakes(const std::string& text, const std::vector<std::string>& overrides = {}) {
  const auto spec = ParseJob(text, "/jobs/job.yaml", overrides);
  return spec.ok() ? "" : std::string(spec.status().message());
}

constexpr char kThree[] =
    "  - name: notify\n"
    "    every: 100steps\n"
    "    run: [./tell.sh, --loud, \"a b\"]\n"
    "  - {name: pause, step: 500, stop: true}\n"
    "  - {name: look, on: evaluation, statistics: [\"*.weight\"], run: mail, timeout: 5m}\n";

TEST_CASE("hooks: a list of sections is read in its order, with defaults and paths", "[job]") {
  const JobSpec spec = Good(WithHooks(kThree));

  REQUIRE(spec.hooks_size() == 3);
  const job::Hook& notify = spec.hooks(0);
  CHECK(notify.name() == "notify");
  CHECK(notify.every().steps() == 100);
  CHECK(notify.run_size() == 3);
  CHECK(notify.run(0) == "/jobs/tell.sh");
  CHECK(notify.run(2) == "a b");
  CHECK(notify.timeout().seconds() == 60);
  CHECK_FALSE(notify.stop());
  CHECK(spec.hooks(1).step() == 500);
  CHECK(spec.hooks(1).stop());
  CHECK_FALSE(spec.hooks(1).has_timeout());
  CHECK(spec.hooks(2).on() == job::Hook::ON_EVALUATION);
  CHECK(spec.hooks(2).run(0) == "mail");  // looked for on the PATH
  CHECK(spec.hooks(2).timeout().seconds() == 300);
  CHECK(Good(kJob).hooks_size() == 0);
}

TEST_CASE("hooks: the state is looked at, and steps are traced, at every instant that workers know", "[job]") {
  for (const char* when : {"step: 3", "every: 2ep", "on: evaluation", "on: checkpoint", "on: nan"}) {
    CAPTURE(when);
    const JobSpec spec =
        Good(WithHooks(absl::StrCat("  - {name: a, ", when, ", statistics: \"*\", histograms: \"*\", profile: 3}\n")));
    CHECK(spec.hooks(0).profile() == 3);
  }
  CHECK(Good(WithHooks("  - {name: a, on: end, statistics: \"*\"}\n")).hooks_size() == 1);
}

TEST_CASE("hooks: --set replaces or removes all of them", "[job]") {
  const std::string text = WithHooks(kThree);
  CHECK(Good(text, {"hooks=[{name: a, step: 3, stop: true}]"}).hooks_size() == 1);
  CHECK(Good(text, {"hooks=null"}).hooks_size() == 0);
  CHECK(Good(text, {"hooks=[]"}).hooks_size() == 0);
  CHECK_THAT(Mistakes(text, {"hooks.0.step=3"}), Catch::Contains("'hooks' is a list of sections and has no keys"));
}

TEST_CASE("hooks: the resolved job gives them again, and they may change at a resume", "[job]") {
  const JobSpec spec = Good(WithHooks(kThree));
  const std::string yaml = ResolvedYaml(spec);
  INFO(yaml);
  const auto again = ParseJob(yaml, "/other/job.yaml");
  INFO(again.status());
  REQUIRE(again.ok());
  CHECK(google::protobuf::util::MessageDifferencer::Equals(spec, *again));

  const JobDifference difference = CompareJobs(spec, Good(kJob));
  CHECK(difference.CanResume());
  REQUIRE(difference.allowed.size() == 1);
  CHECK(difference.allowed[0].key == "hooks");
  CHECK_THAT(difference.allowed[0].before, Catch::Contains("{name: pause, step: 500, stop: true}"));
}

TEST_CASE("hooks: what is mistaken is told with its place and the remedy", "[job]") {
  struct Row {
    const char* hooks;
    const char* message;
  };
  for (const Row& row : std::vector<Row>{
           {"  - {step: 3, stop: true}\n", "job.yaml:11:5: hooks.0.name: is required"},
           {"  - {name: a/b, step: 3, stop: true}\n", "hooks.0.name: expected letters, digits"},
           {"  - {name: a, step: 3, stop: true}\n  - {name: a, step: 4, stop: true}\n",
            "hooks.1.name: 'a' is the name of hooks.0 as well (/jobs/job.yaml:11:5)"},
           {"  - {name: a, stop: true}\n", "hooks.0: says not when; give it step, every or on"},
           {"  - {name: a, step: 3, on: nan, stop: true}\n", "hooks.0: has several of step, every and on"},
           {"  - {name: a, step: 3}\n", "hooks.0: does nothing"},
           {"  - {name: a, step: 3, stop: false}\n", "hooks.0: does nothing"},
           {"  - {name: a, step: 0, stop: true}\n", "hooks.0.step: must be at least 1, found 0"},
           {"  - {name: a, every: 0steps, stop: true}\n", "hooks.0.every: must be more than nothing"},
           {"  - {name: a, every: auto, stop: true}\n", "hooks.0.every: is given in"},
           {"  - {name: a, on: end, stop: true}\n", "hooks.0.stop: the job has ended then"},
           {"  - {name: a, on: evalution, stop: true}\n", "did you mean 'evaluation'?"},
           {"  - {name: a, step: 3, runn: x}\n", "hooks.0.runn: unknown key; did you mean 'run'?"},
           {"  - {name: a, step: 3, run: \"\"}\n", "hooks.0.run: begins with an empty text"},
           {"  - {name: a, step: 3, stop: true, timeout: 5s}\n", "hooks.0.timeout: applies only with run"},
           {"  - {name: a, step: 3, run: x, timeout: 0s}\n", "hooks.0.timeout: must be above 0"},
           {"  - {name: a, every: 30s, statistics: \"*\"}\n", "hooks.0.statistics: are of the state after a step"},
           {"  - {name: a, every: 30s, histograms: \"*\"}\n", "hooks.0.histograms: are of the state after a step"},
           {"  - {name: a, on: end, profile: 3}\n", "hooks.0.profile: is of the steps behind an instant"},
           {"  - {name: a, every: 30s, profile: 3}\n", "hooks.0.profile: is of the steps behind an instant"},
           {"  - {name: a, step: 3, profile: 101}\n", "hooks.0.profile: must be at most 100"},
           {"  - {name: a, step: 3, profile: 0}\n", "hooks.0.profile: must be at least 1"},
           {"  name: a\n", "hooks: expected a list of sections, found a section of keys"},
           {"  - stop\n", "hooks.0: expected a section of keys, found 'stop'"},
       }) {
    INFO(row.hooks);
    CHECK_THAT(Mistakes(WithHooks(row.hooks)), Catch::Contains(row.message));
  }
  const std::string without = With("  eval: {inputs: tx.idx, labels: ty.idx}\n", "");
  CHECK_THAT(Mistakes(absl::StrCat(without, "hooks: [{name: a, on: evaluation, stop: true}]\n")),
             Catch::Contains("hooks.0.on: there are no evaluations; give data.eval"));
  // One mistake is told once.
  const std::string once = Mistakes(WithHooks("  - {name: a, step: x, stop: true}\n"));
  CHECK(once.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace lockstep
