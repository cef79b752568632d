#include "chief/events/event_files.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/events/event_log.h"
#include "chief/events/event_reading.h"
#include "chief/term/storage_term_registry.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

const absl::Time kOpened = absl::FromUnixSeconds(1700000000);
constexpr uint64_t kLarge = 64 << 20;

std::vector<std::string> Names(const Storage& storage) {
  const std::vector<DirectoryEntry> entries = storage.List(layout::kEvents).value();
  std::vector<std::string> names;
  for (const DirectoryEntry& entry : entries) names.push_back(entry.name);
  return names;
}

std::vector<tensorboard::Event> EventsIn(const Storage& storage, const std::string& name, bool power_lost = false) {
  return ReadEvents(ReadWholeFile(storage, JoinPath(layout::kEvents, name), kLarge).value(), power_lost);
}

// The steps with a loss as TensorBoard counts them: files by name, a START drops its step and later ones.
std::multimap<int64_t, std::string> Losses(const Storage& storage, bool power_lost = false) {
  std::multimap<int64_t, std::string> losses;
  for (const std::string& name : Names(storage)) {
    for (const auto& event : EventsIn(storage, name, power_lost)) {
      if (event.session_log().status() == tensorboard::SessionLog::START) {
        losses.erase(losses.lower_bound(event.step()), losses.end());
      }
      if (event.summary().value_size() > 0) losses.emplace(event.step(), name);
    }
  }
  return losses;
}

std::string Step(int64_t step) { return ScalarsRecord(kOpened, step, {{"loss", 1.0}}); }

TEST_CASE("event files: a file begins with its version, goes on, and is durable", "[events]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  EventFiles files(storage, "alpha.17.3", kLarge);
  REQUIRE(files.Append(kOpened, StartRecord(kOpened, 1) + Step(1)).ok());
  REQUIRE(files.Append(kOpened, Step(2)).ok());
  storage.Restart(MemoryStorage::Survival::kNothing, 1);

  CHECK(Names(storage) == std::vector<std::string>{"events.out.tfevents.1700000000.alpha.17.3"});
  const auto events = EventsIn(storage, Names(storage)[0]);
  REQUIRE(events.size() == 4);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].session_log().status() == tensorboard::SessionLog::START);
  CHECK(events[2].step() == 1);
  CHECK(events[3].step() == 2);
}

TEST_CASE("event files: a long file is followed by another, which says nothing of a start", "[events]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  EventFiles files(storage, "alpha.17.3", 100);
  for (int64_t step = 1; step <= 10; ++step) REQUIRE(files.Append(kOpened, Step(step)).ok());

  REQUIRE(Names(storage).size() > 2);
  CHECK(Losses(storage).size() == 10);
  int starts = 0;
  for (const std::string& name : Names(storage)) {
    const auto events = EventsIn(storage, name);
    CHECK(events[0].file_version() == "brain.Event:2");
    for (const auto& event : events) starts += event.has_session_log() ? 1 : 0;
  }
  CHECK(starts == 1);
}

TEST_CASE("event files: a chief's first file drops what an earlier chief told, whatever was lost meanwhile",
          "[events]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  EventFiles first(storage, "alpha.17.3", kLarge);
  REQUIRE(first.Append(kOpened, StartRecord(kOpened, 1) + Step(1) + Step(2) + Step(3)).ok());

  EventFiles next(storage, "alpha.18.4", kLarge);
  REQUIRE(next.Append(kOpened, Step(2) + Step(3)).ok());

  for (int64_t step = 1; step <= 3; ++step) CHECK(Losses(storage).count(step) == 1);
}

TEST_CASE("event files: a new file sorts behind the others, also where the clock went back", "[events]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  EventFiles ahead(storage, "alpha.17.3", kLarge);
  REQUIRE(ahead.Append(kOpened + absl::Hours(1), StartRecord(kOpened, 1) + Step(1) + Step(2) + Step(3)).ok());

  EventFiles next(storage, "beta.18.4", 100);
  REQUIRE(next.Append(kOpened, StartRecord(kOpened, 3) + Step(3) + Step(4)).ok());
  REQUIRE(next.Append(kOpened - absl::Hours(1), Step(5)).ok());

  const auto names = Names(storage);
  REQUIRE(names.size() == 3);
  CHECK(names[0] == "events.out.tfevents.1700003600.alpha.17.3");
  CHECK(names[1] == "events.out.tfevents.1700003601.beta.18.4");
  CHECK(names[2] == "events.out.tfevents.1700003602.beta.18.4");
  CHECK(Losses(storage).size() == 5);
}

TEST_CASE("event files: wherever the storage refuses a first file, it keeps none without the first records",
          "[events]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
  EventFiles files(storage, "alpha.17.3", kLarge);
  for (int64_t at = 0; at < 4; ++at) {  // create, append, sync, sync the folder
    CAPTURE(at);
    storage.SetFaults({.at = {{at, StorageFaults::Kind::kDiskFull}}});
    CHECK(absl::IsResourceExhausted(files.Append(kOpened, Step(1))));
    CHECK(Names(storage).empty());
  }

  storage.SetFaults({});
  CHECK(files.Append(kOpened, Step(1)).ok());
  CHECK(EventsIn(storage, Names(storage)[0]).size() == 3);
}

TEST_CASE("event files: wherever the storage refuses, told again counts once", "[events]") {
  for (const auto kind : {StorageFaults::Kind::kDiskFull, StorageFaults::Kind::kIoError}) {
    for (int64_t at = 0; at < 12; ++at) {
      CAPTURE(at);
      MemoryStorage storage;
      REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
      storage.SetFaults({.at = {{at, kind}, {at + 1, kind}}});
      EventFiles files(storage, "alpha.17.3", 150);
      std::string kept;
      for (int64_t step = 1; step <= 6; ++step) {
        kept += Step(step);
        if (files.Append(kOpened, kept).ok()) kept.clear();
      }
      REQUIRE(kept.empty());

      const auto losses = Losses(storage);
      CHECK(losses.size() == 6);
      for (int64_t step = 1; step <= 6; ++step) CHECK(losses.count(step) == 1);
    }
  }
}

TEST_CASE("event files: a chief killed at any moment leaves no step that counts twice", "[events]") {
  for (int64_t at = 0; at < 16; ++at) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      CAPTURE(at, seed);
      MemoryStorage storage;
      REQUIRE(storage.CreateDirectories(layout::kEvents).ok());
      storage.SetFaults({.at = {{at, StorageFaults::Kind::kCrash}}});
      {
        EventLog log;
        EventFiles files(storage, "alpha.17.3", 150);
        for (int64_t step = 1; step <= 8; ++step) {
          log.Trained(kOpened, step, {{"loss", 1.0}});
          files.Append(kOpened, log.Take()).IgnoreError();
        }
      }
      storage.Restart(MemoryStorage::Survival::kSome, seed);

      EventLog log;
      EventFiles files(storage, "beta.18.4", 150);
      for (int64_t step = 4; step <= 8; ++step) {
        log.Trained(kOpened, step, {{"loss", 1.0}});
        REQUIRE(files.Append(kOpened, log.Take()).ok());
      }

      const auto losses = Losses(storage, /*power_lost=*/true);
      for (int64_t step = 1; step <= 8; ++step) CHECK(losses.count(step) <= 1);
      for (int64_t step = 4; step <= 8; ++step) CHECK(losses.count(step) == 1);
    }
  }
}

// A chief's part in the life of a directory.
absl::Status TellGraph(Storage& storage, int64_t pid) {
  StorageTermRegistry registry(storage);
  TermOwner owner;
  owner.set_pid(pid);
  owner.set_host("alpha");
  auto hold = TermHold::Take(storage, registry, owner);
  if (!hold.ok()) return hold.status();
  return StoreGraphEvents(**hold, kOpened, "0123abcd", [] {
    tensorboard::Event event = EventAt(kOpened, 0);
    event.set_graph_def("a graph");
    return EncodeEventRecord(event.SerializeAsString());
  });
}

TEST_CASE("event files: a metagraph is told once, wherever chiefs are killed", "[events]") {
  MemoryStorage undisturbed;
  undisturbed.SetFaults({});
  REQUIRE(TellGraph(undisturbed, 17) == absl::OkStatus());
  const int64_t operations = undisturbed.operations();
  REQUIRE(operations > 3);

  for (int64_t at = 0; at <= operations; ++at) {
    for (const auto survival : {MemoryStorage::Survival::kNothing, MemoryStorage::Survival::kEverything}) {
      CAPTURE(at);
      MemoryStorage storage;
      storage.SetFaults({.at = {{at, StorageFaults::Kind::kCrash}}});
      TellGraph(storage, 17).IgnoreError();
      storage.Restart(survival, 1);
      for (int64_t pid = 18; pid < 21; ++pid) REQUIRE(TellGraph(storage, pid) == absl::OkStatus());

      int graphs = 0;
      for (const std::string& name : Names(storage)) {
        for (const auto& event : EventsIn(storage, name)) graphs += event.has_graph_def() ? 1 : 0;
      }
      CHECK(graphs == 1);
      CHECK(Names(storage)[0] == "events.out.tfevents.0000000000.metagraph.0123abcd");
    }
  }
}

}  // namespace
}  // namespace lockstep::chief
