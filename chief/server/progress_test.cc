#include "chief/server/progress.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "chief/server/live_line.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// What a job of 20,000 steps shows at step 12,345, with 100 samples a step.
struct Shown {
  explicit Shown(bool live) {
    Progress::Options options;
    options.end_step = 20000;
    options.global_batch = 100;
    options.epoch_samples = 1000;
    options.live = live;
    options.tell = [this](const LogEvent& event) { events.push_back(event); };
    options.show_live = [this](OutputQueue::LiveLine line) { lines.push_back(std::move(line)); };
    progress = std::make_unique<Progress>(options);
    progress->SetWorkers(4);
    StepsAgreed agreed;
    agreed.step = 12335;
    progress->On(now, agreed);
    agreed.step = 12345;
    agreed.records.push_back({.step = 12345, .loss = 0.25});
    now += absl::Seconds(1);
    progress->On(now, agreed);
  }

  absl::Time now = absl::UnixEpoch();
  std::vector<LogEvent> events;
  std::vector<OutputQueue::LiveLine> lines;
  std::unique_ptr<Progress> progress;
};

TEST_CASE("progress: the live line fits any width and leaves out what matters least", "[chief]") {
  Shown shown(true);
  shown.progress->Tick(shown.now);
  REQUIRE(shown.lines.size() == 1);
  const auto& line = shown.lines[0];

  CHECK(line(100) == "step 12345/20000  61%  ep 1234.5  loss 0.2500  1000 samples/s  ETA 12m45s  4 workers");
  CHECK(line(79) == "step 12345/20000  61%  loss 0.2500  1000 samples/s  ETA 12m45s  4 workers");
  CHECK(line(39) == "step 12345/20000  61%  loss 0.2500");
  CHECK(line(10) == "step 12345");
  for (int columns = 1; columns < 120; ++columns) CHECK(line(columns).size() <= static_cast<size_t>(columns));
  CHECK(shown.events.empty());
}

TEST_CASE("progress: a rate that a plateau cut is told once, with its step, whatever evaluations were told",
          "[chief]") {
  std::vector<std::string> told;
  Progress::Options options;
  options.evaluation = {.metric = Metric::kLoss, .plateau = {.cuts = true}};
  options.tell = [&](const LogEvent& event) { told.push_back(event.text); };
  Progress progress(options);
  const auto agree = [&](uint64_t step, const std::vector<double>& rates) {
    StepsAgreed agreed;
    agreed.step = step;
    for (size_t i = 0; i < rates.size(); ++i) {
      agreed.records.push_back({.step = step - rates.size() + 1 + i, .learning_rate = rates[i]});
    }
    progress.On(absl::UnixEpoch(), agreed);
  };
  agree(3, {0.025, 0.05, 0.1});
  agree(6, {0.1, 0.02, 0.02});
  agree(4, {0.1});
  agree(5, {0.02});

  CHECK(told == std::vector<std::string>{"learning rate 0.02 from step 5 on: loss no longer improves",
                                         "learning rate 0.02 from step 5 on: loss no longer improves"});
}

TEST_CASE("progress: the live line is drawn five times a second at most, a plain one every five seconds", "[chief]") {
  Shown live(true);
  for (int i = 0; i < 10; ++i) live.progress->Tick(live.now += absl::Milliseconds(100));
  CHECK(live.lines.size() == 5);

  Shown plain(false);
  for (int i = 0; i < 100; ++i) plain.progress->Tick(plain.now += absl::Milliseconds(100));
  CHECK(plain.events.size() == 2);
  CHECK(plain.lines.empty());
}

TEST_CASE("progress: a plain line carries its numbers for programs and may be dropped", "[chief]") {
  Shown shown(false);
  shown.progress->Tick(shown.now);

  REQUIRE(shown.events.size() == 1);
  const LogEvent& event = shown.events[0];
  CHECK(event.regular);
  CHECK(event.name == "progress");
  CHECK(event.text == "step 12345/20000  61%  ep 1234.5  loss 0.2500  1000 samples/s  ETA 12m45s  4 workers");
  const std::map<std::string, LogEvent::Value> fields(event.fields.begin(), event.fields.end());
  REQUIRE(fields.count("step") == 1);
  REQUIRE(fields.count("end_step") == 1);
  REQUIRE(fields.count("loss") == 1);
  CHECK(fields.at("step") == LogEvent::Value(int64_t{12345}));
  CHECK(fields.at("end_step") == LogEvent::Value(int64_t{20000}));
  CHECK(fields.at("loss") == LogEvent::Value(0.25));
}

TEST_CASE("progress: a job that was stopped says where it stands and how it goes on", "[chief]") {
  Shown shown(true);
  shown.progress->Tick(shown.now);

  shown.progress->Close("runs/a/checkpoints/step-000012345", {}, /*done=*/false);

  REQUIRE(shown.lines.size() == 2);
  CHECK(shown.lines[1] == nullptr);
  REQUIRE(shown.events.size() == 1);
  CHECK(shown.events[0].name == "stopped");
  CHECK_THAT(shown.events[0].text, Contains("stopped at step 12345; checkpoint runs/a/checkpoints/step-000012345"));
  CHECK_THAT(shown.events[0].text, Contains("the same command goes on from there"));
}

}  // namespace
}  // namespace lockstep::chief
