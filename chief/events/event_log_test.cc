#include "chief/events/event_log.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chief/events/event_reading.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

std::vector<tensorboard::Event> EventsAt(const Storage& storage, absl::string_view path) {
  return ReadEvents(ReadWholeFile(storage, path, 1 << 20).value());
}

TEST_CASE("events: a record is TensorFlow's, byte for byte", "[events]") {
  const std::string payload = std::string("\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d", 11) + "brain.Event:2";
  const std::string head("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12);
  CHECK(EncodeEventRecord(payload) == head + payload + std::string("\x12\x4b\x36\xab", 4));
}

TEST_CASE("events: a file begins with its version, then says where training goes on, then what happened", "[events]") {
  MemoryStorage storage;
  const std::string name = EventFileName(kNow, "alpha", 17, 0);
  CHECK(name == "events.out.tfevents.1700000000.alpha.17.0");
  EventLog log;
  log.Trained(kNow + absl::Milliseconds(500), 41, {{"loss", 0.5}, {"lr", 0.25}});
  log.Evaluated(kNow, 41, {{"evaluation/accuracy", 0.75}});
  auto file = CreateEventFile(storage, name, kNow, log.Take()).value();
  log.Published(kNow, 50, "checkpoints/step-000000050");
  REQUIRE(file->Append(log.Take()).ok());
  REQUIRE(file->Sync().ok());
  storage.Restart(MemoryStorage::Survival::kNothing, 1);

  const auto events = EventsAt(storage, "events/" + name);
  REQUIRE(events.size() == 5);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].session_log().status() == tensorboard::SessionLog::START);
  CHECK(events[1].step() == 41);
  CHECK(events[2].wall_time() == 1700000000.5);
  CHECK(events[2].step() == 41);
  CHECK(events[2].summary().value(0).tag() == "loss");
  CHECK(events[2].summary().value(0).simple_value() == 0.5f);
  CHECK(events[2].summary().value(1).tag() == "lr");
  CHECK(events[3].summary().value(0).tag() == "evaluation/accuracy");
  CHECK(events[4].session_log().status() == tensorboard::SessionLog::CHECKPOINT);
  CHECK(events[4].session_log().checkpoint_path() == "checkpoints/step-000000050");
  CHECK(log.Take().empty());
}

TEST_CASE("events: training that goes back says from where, so that readers drop the steps it repeats", "[events]") {
  MemoryStorage storage;
  EventLog log;
  for (const int64_t step : {1, 2, 3, 2, 3, 4}) log.Trained(kNow, step, {{"loss", 1.0}});
  REQUIRE(CreateEventFile(storage, "e", kNow, log.Take()).ok());

  std::vector<int64_t> starts, steps;
  for (const auto& event : EventsAt(storage, "events/e")) {
    if (event.has_session_log()) starts.push_back(event.step());
    if (event.has_summary()) steps.push_back(event.step());
  }
  CHECK(starts == std::vector<int64_t>{1, 2});
  CHECK(steps == std::vector<int64_t>{1, 2, 3, 2, 3, 4});
}

TEST_CASE("events: what nobody takes is bounded", "[events]") {
  EventLog log;
  for (int64_t step = 1; step < 400'000; ++step) log.Trained(kNow, step, {{"loss", 1.0}});
  CHECK(log.Take().size() < (17u << 20));
}

TEST_CASE("events: a file is never continued by another process", "[events]") {
  MemoryStorage storage;
  REQUIRE(CreateEventFile(storage, "e", kNow, "").ok());
  CHECK(CreateEventFile(storage, "e", kNow, "").status().code() == absl::StatusCode::kAlreadyExists);
  CHECK(EventsAt(storage, "events/e").size() == 1);
}

TEST_CASE("events: wherever the storage refuses, it keeps no file without the first records", "[events]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  EventLog log;
  log.Trained(kNow, 1, {{"loss", 1.0}});
  const std::string records = log.Take();
  storage.SetFaults({});
  REQUIRE(CreateEventFile(storage, "whole", kNow, records).ok());
  const int64_t operations = storage.operations();
  REQUIRE(operations >= 4);  // create, append, sync, sync the folder

  for (int64_t at = 0; at < operations; ++at) {
    CAPTURE(at);
    storage.SetFaults({.at = {{at, StorageFaults::Kind::kDiskFull}}});
    CHECK(absl::IsResourceExhausted(CreateEventFile(storage, "e", kNow, records).status()));
    CHECK(storage.List(layout::kEvents)->size() == 1);
  }

  storage.SetFaults({});
  CHECK(CreateEventFile(storage, "e", kNow, records).ok());
  CHECK(EventsAt(storage, "events/e").size() == 3);
}

}  // namespace
}  // namespace lockstep::chief
