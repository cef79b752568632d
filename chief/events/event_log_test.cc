#include "chief/events/event_log.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chief/events/event_reading.h"

namespace lockstep::chief {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

TEST_CASE("events: a log says where training goes on, then what happened", "[events]") {
  EventLog log;
  log.Trained(kNow + absl::Milliseconds(500), 41, {{"loss", 0.5}, {"learning_rate", 0.25}});
  log.Measured(kNow, 41, {{"evaluation/accuracy", 0.75}});
  log.Noted(kNow, 41, "cluster/changes", "- worker-0: joined");
  log.Published(kNow, 50, "checkpoints/step-000000050");

  const auto events = ReadEvents(log.Take());
  REQUIRE(events.size() == 5);
  CHECK(events[0].session_log().status() == tensorboard::SessionLog::START);
  CHECK(events[0].step() == 41);
  CHECK(events[1].wall_time() == 1700000000.5);
  CHECK(events[1].step() == 41);
  CHECK(events[1].summary().value(0).tag() == "loss");
  CHECK(events[1].summary().value(0).simple_value() == 0.5f);
  CHECK(events[1].summary().value(1).tag() == "learning_rate");
  CHECK(events[2].summary().value(0).tag() == "evaluation/accuracy");
  CHECK(events[3].summary().value(0).tensor().string_val(0) == "- worker-0: joined");
  CHECK(events[4].session_log().status() == tensorboard::SessionLog::CHECKPOINT);
  CHECK(events[4].session_log().checkpoint_path() == "checkpoints/step-000000050");
  CHECK(log.Take().empty());
}

TEST_CASE("events: training that goes back says from where, so that readers drop the steps it repeats", "[events]") {
  EventLog log;
  for (const int64_t step : {1, 2, 3, 2, 3, 4}) log.Trained(kNow, step, {{"loss", 1.0}});

  std::vector<int64_t> starts, steps;
  for (const auto& event : ReadEvents(log.Take())) {
    if (event.has_session_log()) starts.push_back(event.step());
    if (event.has_summary()) steps.push_back(event.step());
  }
  CHECK(starts == std::vector<int64_t>{1, 2});
  CHECK(steps == std::vector<int64_t>{1, 2, 3, 2, 3, 4});
}

TEST_CASE("events: what nobody takes is bounded", "[events]") {
  EventLog log;
  for (int64_t step = 1; step < 800'000; ++step) log.Trained(kNow, step, {{"loss", 1.0}});
  CHECK(log.Take().size() < (17u << 20));
}

TEST_CASE("events: where the mark of going back was dropped, the next step has one", "[events]") {
  EventLog log;
  log.Trained(kNow, 7, {{"loss", 1.0}});
  log.Noted(kNow, 7, "text", std::string(17u << 20, 'x'));
  log.Trained(kNow, 5, {{"loss", 1.0}});
  log.Take();

  for (const int64_t step : {6, 7}) log.Trained(kNow, step, {{"loss", 1.0}});

  const auto events = ReadEvents(log.Take());
  REQUIRE(events.size() == 3);
  CHECK(events[0].session_log().status() == tensorboard::SessionLog::START);
  CHECK(events[0].step() == 6);
}

}  // namespace
}  // namespace lockstep::chief
