#include "chief/hooks/hook_desk.h"

#include <sched.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "common/job/job.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

constexpr char kHookedJob[] =
    "name: small\n"
    "model: {builtin: {name: lenet}}\n"
    "data: {train: {inputs: x, labels: y}}\n"
    "train: {duration: 10ep, global_batch_size: 256, optimizer: {lr: 0.1}}\n"
    "hooks:\n";

// What commands wrote, by the name of their file.
struct Outputs {
  Mutex mutex;
  std::map<std::string, std::string> texts GUARDED_BY(mutex);
};

HookDesk::Options OptionsOf(const std::string& hooks, Outputs& outputs) {
  const auto job = ParseJob(kHookedJob + hooks, "/jobs/job.yaml");
  INFO(job.status());
  REQUIRE(job.ok());
  HookDesk::Options options;
  options.job = *job;
  options.epoch_samples = 2560;
  options.facts = [] { return HookFacts{.job = "small", .loss = 0.5}; };
  options.keep_output = [&outputs](const std::string& name, const std::string& text) {
    MutexLock lock(&outputs.mutex);
    outputs.texts[name] = text;
    return name;
  };
  return options;
}

void WaitForDesk(const HookDesk& desk) {
  while (!desk.idle()) sched_yield();
}

TEST_CASE("hook desk: a command runs with its event, and its output is kept under the hook's name and step",
          "[hooks]") {
  Outputs outputs;
  HookDesk desk(
      OptionsOf("  - {name: tell, every: 10steps, run: [cat]}\n"
                "  - {name: last, on: end, run: [cat]}\n",
                outputs));

  desk.Agreed(absl::Now(), 15);
  CHECK(desk.TakeNews());
  desk.Ended(15);
  WaitForDesk(desk);

  MutexLock lock(&outputs.mutex);
  REQUIRE(outputs.texts.size() == 2);
  CHECK_THAT(outputs.texts["tell-step-10"], Contains("\"event\":\"step\"") && Contains("\"loss\":0.5"));
  CHECK_THAT(outputs.texts["last-step-15"], Contains("\"event\":\"end\""));
  CHECK(desk.marks().step() == 15);
}

TEST_CASE("hook desk: a hook stops the job where no step is known before", "[hooks]") {
  Outputs outputs;
  HookDesk desk(
      OptionsOf("  - {name: exact, every: 10steps, stop: true}\n"
                "  - {name: broken, on: nan, stop: true}\n"
                "  - {name: saved, on: checkpoint, stop: true}\n",
                outputs));

  desk.Agreed(absl::Now(), 15);
  CHECK(desk.TakeStop().empty());  // the workers stop there
  desk.NotFinite(16);
  CHECK(desk.TakeStop() == "broken");
  CHECK(desk.TakeStop().empty());
  desk.Published(20);
  CHECK(desk.TakeStop() == "saved");
}

}  // namespace
}  // namespace lockstep::chief
