// What hooks look at in real processes: traces of steps, statistics at every instant, and the tensor that is not
// finite.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"
#include "tests/e2e/shown_events.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;
namespace fs = std::filesystem;

// Lines that no terminal folds.
constexpr char kJson[] = "observe.log.format=json";

// A trace of the job's directory.
nlohmann::json Trace(const std::string& directory, const std::string& name) {
  const std::string text = TempPath("trace");
  const std::string packed = absl::StrCat(directory, "/profiles/", name, ".trace.json.gz");
  CAPTURE(packed);
  REQUIRE(system(absl::StrCat("gzip -dc '", packed, "' > '", text, "'").c_str()) == 0);
  return nlohmann::json::parse(Read(text));
}

struct Event {
  std::string name, kind;
  double begin = 0, end = 0;
};

std::vector<Event> LooksOf(const nlohmann::json& trace) {
  std::vector<Event> events;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const double begin = event["ts"];
    events.push_back({event["name"], event["cat"], begin, begin + event["dur"].get<double>()});
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.begin < b.begin; });
  return events;
}

// Steps are one after another, and so is what is in them.
void CheckThatItNests(const std::vector<Event>& events) {
  constexpr double kRounding = 0.002;  // microseconds, as they are written
  double last = 0, last_step = 0;
  for (const Event& event : events) {
    CAPTURE(event.name);
    double& before = event.kind == "step" ? last_step : last;
    CHECK(event.begin >= before - kRounding);
    before = event.end;
    if (event.kind == "step" || event.kind == "state") continue;
    CHECK(std::any_of(events.begin(), events.end(), [&](const Event& step) {
      return step.kind == "step" && step.begin <= event.begin + kRounding && event.end <= step.end + kRounding;
    }));
  }
}

std::map<std::string, int> Count(const std::vector<Event>& events, const std::string& kind) {
  std::map<std::string, int> names;
  for (const Event& event : events) names[event.name] += event.kind == kind ? 1 : 0;
  std::erase_if(names, [](const auto& entry) { return entry.second == 0; });
  return names;
}

TEST_CASE("hooks: each worker traces the steps behind a hook's instant, and no bit changes", "[e2e]") {
  const std::vector<std::string> settings = {
      kInputs, kLabels, "train.duration=60steps", "checkpoint.every=20steps", "checkpoint.when_busy=wait", kJson};
  LocalJob plain("trace_plain", kJob, settings);
  LocalJob job("trace", kJob, settings);
  job.Override(
      "hooks=[{name: slow, step: 10, profile: 5}, {name: saves, on: checkpoint, profile: 2}, {name: late, step: 57, "
      "profile: 100}]");

  job.RunUndisturbed(2);
  plain.RunUndisturbed(2);

  CHECK(job.Digest(60) == plain.Digest(60));
  for (const char* worker : {"worker-0", "worker-1"}) {
    CAPTURE(worker);
    const std::vector<Event> events = LooksOf(Trace(job.directory(), absl::StrCat("slow-step-10.", worker)));
    CheckThatItNests(events);
    CHECK(Count(events, "step") ==
          std::map<std::string, int>{{"step 11", 1}, {"step 12", 1}, {"step 13", 1}, {"step 14", 1}, {"step 15", 1}});
    const auto forward = Count(events, "forward"), backward = Count(events, "backward");
    CHECK(forward.size() >= 5);
    CHECK(backward.size() >= 5);
    // Two of the four logical shards each, once more where a step was made again with other exponents.
    const int passes = forward.at("conv1");
    CHECK(passes >= 5 * 2);
    for (const auto& [node, runs] : forward) {
      CAPTURE(node);
      if (node[0] != '(' && !absl::StartsWith(node, "layout")) CHECK(runs == passes);
    }
    CHECK(Count(events, "update") == std::map<std::string, int>{{"(update)", 5}});
    CHECK(Count(events, "data")["(wait for data)"] == passes);
    CHECK(Count(events, "reduction")["(wait for the word)"] == passes / 2);
    CHECK(Count(events, "reduction")["(reduce)"] >= 5);
    const std::vector<Event> saves = LooksOf(Trace(job.directory(), absl::StrCat("saves-step-20.", worker)));
    CHECK(Count(saves, "step").count("step 21") == 1);
    // The job ends before it is whole.
    const std::vector<Event> late = LooksOf(Trace(job.directory(), absl::StrCat("late-step-57.", worker)));
    CHECK(Count(late, "step").size() == 3);
    CHECK_THAT(job.LogOf("chief"),
               Contains(absl::StrCat("hook late of step 57: the trace of the next 3 steps of ", worker)));
  }
}

TEST_CASE("hooks: a worker that is killed while it traces loses its trace alone", "[e2e]") {
  LocalJob job("trace_killed", kJob, {kInputs, kLabels, "train.duration=100000steps", "checkpoint.every=1000steps"});
  job.Override("hooks=[{name: slow, step: 100, profile: 100}, {name: enough, step: 400, stop: true}]");
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(101);
  job.Kill("worker-1");

  CHECK(job.WaitForEnd("chief") == Ended{});

  CHECK(job.Stats().job().committed_step() == 400);
  int whole = 0;
  if (fs::exists(job.directory() + "/profiles")) {
    for (const auto& entry : fs::directory_iterator(job.directory() + "/profiles")) {
      const std::string name = entry.path().filename();
      CAPTURE(name);
      CHECK(Count(LooksOf(Trace(job.directory(), name.substr(0, name.find(".trace")))), "step").count("step 200") == 1);
      ++whole;
    }
  }
  CHECK(whole >= 1);
}

TEST_CASE("hooks: the state is looked at when it is saved, and when the job ends", "[e2e]") {
  LocalJob job(
      "looks", kJob,
      {kInputs, kLabels, "train.duration=25steps", "checkpoint.every=10steps", "checkpoint.when_busy=wait", kJson});
  job.Override(
      "hooks=[{name: saved, on: checkpoint, statistics: \"*.bias\"}, {name: last, on: end, histograms: \"*.bias\"}]");

  job.RunUndisturbed(1);

  std::map<std::string, std::string> files;
  for (const auto& entry : fs::directory_iterator(job.directory() + "/events")) {
    files[entry.path().filename()] = Read(entry.path());
  }
  const Shown shown = ShowEvents(files);
  int norms = 0, histograms = 0;
  for (const auto& [tag, curve] : shown.curves) {
    CAPTURE(tag);
    if (absl::EndsWith(tag, ".bias/norm")) {
      ++norms;
      CHECK(curve.count(10) == 1);
      CHECK(curve.count(20) == 1);
      CHECK(curve.count(25) == 1);
    } else if (absl::StartsWith(tag, "tensors/") && absl::EndsWith(tag, ".bias")) {
      ++histograms;
      CHECK(curve.count(20) == 0);
      CHECK(curve.count(25) == 1);
    }
  }
  CHECK(norms > 0);
  CHECK(histograms > 0);
  CHECK_THAT(job.LogOf("chief"), Contains("hook saved of step 25: ") && Contains("hook saved of step 10: "));
}

TEST_CASE("hooks: at a NaN the first tensors that are not finite are named, and the state is looked at", "[e2e]") {
  const std::vector<std::string> settings = {kInputs, kLabels, "train.duration=20steps", "train.optimizer.lr=1000000",
                                             kJson};
  const std::string hooks = "hooks=[{name: alarm, on: nan, statistics: \"*.bias\"}]";
  SECTION("a job that stops there") {
    LocalJob job("nan_stop", kJob, settings);
    job.Override(hooks);
    job.StartChief(1);
    job.StartWorker(0);
    CHECK(job.WaitForEnd("chief").code == kExitBadData);
    INFO(job.LogOf("chief"));
    CHECK_THAT(job.LogOf("chief"), Contains("hook alarm of step ") && Contains("the gradient of '") &&
                                       Contains("' is not finite at step ") && Contains("the state") &&
                                       Contains(".bias: "));
  }
  SECTION("a job that skips such steps") {
    LocalJob job("nan_skip", kJob, settings);
    job.Override("train.on_nan=skip_step");
    job.Override(hooks);
    job.RunUndisturbed(1);
    CHECK_THAT(job.LogOf("chief"),
               Contains("hook alarm of step ") && Contains("the gradient of '") && Contains("the state"));
  }
  SECTION("a hook that names no tensors") {
    LocalJob job("nan_run", kJob, settings);
    job.Override("train.on_nan=skip_step");
    job.Override("hooks=[{name: alarm, on: nan, run: \"true\"}]");
    job.RunUndisturbed(1);
    CHECK_THAT(job.LogOf("chief"), Contains("the gradient of '") && !Contains("the state is finite"));
  }
}

}  // namespace
}  // namespace lockstep::e2e
