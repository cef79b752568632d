// Every state that a crash may leave, for every prefix of everything that changes what a job's directory holds: the
// power is cut, or the process is killed, another one starts, and the power is cut after it or at any of its own
// operations. What was acknowledged is found whole by the next start.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "chief/checkpoint/adopt.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "chief/checkpoint/format_1.h"
#include "chief/checkpoint/older_directory.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Kind = StorageFaults::Kind;
using Survival = MemoryStorage::Survival;

constexpr int kKeep = 3;

// What a chief that started stands by.
struct Seen {
  int64_t newest = -1;
  std::set<int64_t> steps;
  std::set<int64_t> pinned;
};

Seen SeenBy(const SmallChief& chief) {
  Seen seen;
  for (const auto& [name, checkpoint] : chief.store->accepted()) {
    seen.newest = checkpoint.manifest.step();
    seen.steps.insert(seen.newest);
    if (checkpoint.pinned) seen.pinned.insert(seen.newest);
  }
  return seen;
}

// Something that changes the directory, from a state that `prepare` makes.
struct Act {
  std::string name;
  std::function<void(MemoryStorage&)> prepare;
  std::function<absl::Status(SmallChief&)> run;
  // What holds once `run` said OK.
  std::function<bool(const Seen&)> holds;
};

void Train(MemoryStorage& storage, const std::vector<int64_t>& steps, bool evaluation_pending = false) {
  const auto chief = SmallChief::Start(storage, kKeep).value();
  for (const int64_t step : steps) {
    CommitInfo info = SmallCommit();
    info.evaluation_pending = evaluation_pending;
    REQUIRE(chief->store->Publish(StoreAll(*chief->hold, SmallState(step), 2).value(), info).ok());
  }
}

std::vector<Act> Acts() {
  const auto trained = [](MemoryStorage& storage) { Train(storage, {10, 20, 30}); };
  std::vector<Act> acts;
  acts.push_back({"save and retention", trained, [](SmallChief& chief) { return chief.Save(SmallState(40)).status(); },
                  [](const Seen& seen) { return seen.newest == 40; }});
  acts.push_back({"amend",
                  [](MemoryStorage& storage) {
                    Train(storage, {10, 20, 30}, /*evaluation_pending=*/true);
                  },
                  [](SmallChief& chief) {
                    return chief.store->Amend(SmallState(30).Id(), {.step = 30, .value = 0.5}, kKeepNamed).status();
                  },
                  [](const Seen& seen) { return seen.newest == 30; }});
  acts.push_back({"pin", trained,
                  [](SmallChief& chief) { return chief.store->Change(CheckpointChange::kPin, 10).status(); },
                  [](const Seen& seen) { return seen.pinned.contains(10); }});
  acts.push_back({"unpin",
                  [](MemoryStorage& storage) {
                    Train(storage, {10, 20, 30});
                    const auto chief = SmallChief::Start(storage, kKeep).value();
                    REQUIRE(chief->store->Change(CheckpointChange::kPin, 10).ok());
                  },
                  [](SmallChief& chief) { return chief.store->Change(CheckpointChange::kUnpin, 10).status(); },
                  [](const Seen& seen) { return seen.pinned.empty(); }});
  acts.push_back({"remove", trained,
                  [](SmallChief& chief) { return chief.store->Change(CheckpointChange::kRemove, 10).status(); },
                  [](const Seen& seen) { return !seen.steps.contains(10); }});
  acts.push_back({"set aside", trained,
                  [](SmallChief& chief) { return chief.store->SetAside("step-000000030", "unaudited").status(); },
                  [](const Seen& seen) { return seen.newest == 20; }});
  acts.push_back({"adopt", trained,
                  [](SmallChief& chief) {
                    MemoryStorage elsewhere;
                    Train(elsewhere, {25});
                    const auto found = CheckpointReader::OpenFolder(elsewhere, layout::CheckpointPath(25)).value();
                    std::vector<std::string> messages;
                    return Adopt(found, *chief.hold, SmallMark(true), *chief.store, messages).status();
                  },
                  [](const Seen& seen) { return seen.pinned.contains(25) && seen.newest == 30; }});
  return acts;
}

// A start at whatever a crash left. REQUIRES that it succeeds, and that every byte of its newest checkpoint is right.
Seen StartAgain(MemoryStorage& storage) {
  const auto chief = SmallChief::Start(storage, kKeep);
  REQUIRE(chief.status() == absl::OkStatus());
  const Seen seen = SeenBy(**chief);
  REQUIRE((*chief)->newest.has_value());
  REQUIRE((*chief)->newest->manifest().step() == seen.newest);
  REQUIRE((*chief)->newest->VerifyContent() == absl::OkStatus());
  CHECK((*chief)->newest->ComputeDigests()->state == SmallState(seen.newest).Digest());
  return seen;
}

void CutPower(MemoryStorage& storage, int way) {
  const Survival survival = way == 0 ? Survival::kNothing : way == 1 ? Survival::kEverything : Survival::kSome;
  storage.Restart(survival, static_cast<uint64_t>(way));
}

constexpr int kWays = 4;  // nothing, everything, some, others

// Runs `act` until operation `at`, where the process or the machine goes down. Whether it was done before.
bool RunUntil(MemoryStorage& storage, const Act& act, int64_t at, bool& acknowledged) {
  act.prepare(storage);
  auto chief = SmallChief::Start(storage, kKeep).value();
  storage.SetFaults({.at = {{at, Kind::kCrash}}});
  acknowledged = act.run(*chief).ok();
  return storage.operations() <= at;
}

TEST_CASE("crash states: a cut of the power at every operation of everything that changes the directory",
          "[checkpoint]") {
  int64_t states = 0;
  for (const Act& act : Acts()) {
    for (int64_t at = 0, done = 0; done == 0; ++at) {
      for (int way = 0; way < kWays; ++way, ++states) {
        INFO(act.name << ", operation " << at << ", way " << way);
        MemoryStorage storage;
        bool acknowledged = false;
        done = RunUntil(storage, act, at, acknowledged);
        CutPower(storage, way);
        const Seen seen = StartAgain(storage);
        if (acknowledged) CHECK(act.holds(seen));
      }
    }
  }
  std::cout << states << " states after a cut of the power\n";
}

TEST_CASE("crash states: after a kill, a new start and a power cut, what the second process relied on is durable",
          "[checkpoint]") {
  int64_t states = 0;
  for (const Act& act : Acts()) {
    for (int64_t at = 0, done = 0; done == 0; ++at) {
      for (int way = 0; way < kWays; ++way, ++states) {
        INFO(act.name << ", operation " << at << ", way " << way);
        MemoryStorage storage;
        bool acknowledged = false;
        done = RunUntil(storage, act, at, acknowledged);
        storage.KillProcess();
        const Seen second = StartAgain(storage);
        if (acknowledged) CHECK(act.holds(second));
        CutPower(storage, way);
        const Seen third = StartAgain(storage);
        CHECK(third.newest == second.newest);
        CHECK(third.pinned == second.pinned);
        CHECK(third.steps == second.steps);
      }
    }
  }
  std::cout << states << " states after kill, start, cut\n";
}

// How far apart the operations of a start are at which it is cut; LOCKSTEP_CRASH_EVERY=1 takes all of them (a minute).
int64_t StartCutEvery() {
  const char* wanted = std::getenv("LOCKSTEP_CRASH_EVERY");
  return wanted == nullptr ? 7 : std::max<int64_t>(1, std::atoll(wanted));
}

TEST_CASE("crash states: kill, start again, cut the power within that start", "[checkpoint]") {
  int64_t states = 0;
  const int64_t every = StartCutEvery();
  for (const Act& act : Acts()) {
    for (int64_t at = 0, done = 0; done == 0; ++at) {
      for (int64_t then = at % every, started = 0; started == 0; then += every, ++states) {
        INFO(act.name << ", operation " << at << ", start cut at " << then);
        MemoryStorage storage;
        bool acknowledged = false;
        done = RunUntil(storage, act, at, acknowledged);
        storage.KillProcess();
        storage.SetFaults({.at = {{then, Kind::kCrash}}});
        started = SmallChief::Start(storage, kKeep).ok();
        CutPower(storage, static_cast<int>(then % 2) * 2);  // nothing or some of it survives
        const Seen seen = StartAgain(storage);
        if (acknowledged) CHECK(act.holds(seen));
      }
    }
  }
  std::cout << states << " states after kill and a cut within the start\n";
}

TEST_CASE("crash states: a first start that is killed anywhere, a second one that saves, and a cut of the power",
          "[checkpoint]") {
  int64_t states = 0;
  for (int64_t at = 0, done = 0; done == 0; ++at) {
    for (int way = 0; way < kWays; ++way, ++states) {
      INFO("operation " << at << ", way " << way);
      MemoryStorage storage;
      storage.SetFaults({.at = {{at, Kind::kCrash}}});
      done = SmallChief::Start(storage, kKeep).ok();
      storage.KillProcess();
      {
        const auto chief = SmallChief::Start(storage, kKeep);
        REQUIRE(chief.status() == absl::OkStatus());
        REQUIRE((*chief)->Save(SmallState(10)).ok());
      }
      CutPower(storage, way);
      CHECK(StartAgain(storage).newest == 10);
    }
  }
  std::cout << states << " states after a first start\n";
}

// Directories as earlier programs left them: the first start changes them.
struct Older {
  std::string name;
  std::function<void(MemoryStorage&)> prepare;
};

TEST_CASE("crash states: the first start in a directory of an earlier program, cut anywhere, by kill or power",
          "[checkpoint]") {
  const std::vector<Older> kinds = {
      {"before the log",
       [](MemoryStorage& storage) {
         Train(storage, {10, 20, 30});
         MakeOlder(storage);
       }},
      {"format version 1",
       [](MemoryStorage& storage) {
         Train(storage, {10, 20, 30});
         JobLog log(storage);
         REQUIRE(log.Read().ok());
         for (const int64_t step : {10, 20, 30}) {
           REQUIRE(MakeFormat1(storage, log, layout::CheckpointPath(step)).ok());
         }
       }},
  };
  int64_t states = 0;
  for (const Older& older : kinds) {
    for (int64_t at = 0, done = 0; done == 0; ++at) {
      for (int way = 0; way < 2 * kWays; ++way, ++states) {
        INFO(older.name << ", operation " << at << ", way " << way);
        MemoryStorage storage;
        older.prepare(storage);
        storage.SetFaults({.at = {{at, Kind::kCrash}}});
        done = SmallChief::Start(storage, kKeep).ok();
        if (way >= kWays) {
          storage.KillProcess();
          CHECK(StartAgain(storage).newest == 30);
        }
        CutPower(storage, way % kWays);
        CHECK(StartAgain(storage).newest == 30);
      }
    }
  }
  std::cout << states << " states of carrying over\n";
}

}  // namespace
}  // namespace lockstep::chief
