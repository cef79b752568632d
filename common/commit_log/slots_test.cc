// What every implementation of Slots keeps, and what a crash leaves of those on a storage.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/sealed.h"
#include "common/commit_log/commit_log.h"
#include "common/commit_log/memory_slots.h"
#include "common/commit_log/storage_slots.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep {
namespace {

std::string Name() {
  static uint64_t last = 0;
  return absl::StrCat(getpid(), "x", ++last);
}

std::string FreshDirectory(const std::string& name) {
  const char* const root = std::getenv("TEST_TMPDIR");
  const std::string path = absl::StrCat(root != nullptr ? root : "/tmp", "/", name, "-", Name());
  std::filesystem::remove_all(path);
  return path;
}

// One of each kind.
struct AnySlots {
  explicit AnySlots(int kind) {
    if (kind == 0) slots = std::make_unique<MemorySlots>();
    if (kind == 1) storage = std::make_unique<MemoryStorage>();
    if (kind == 2) storage = LocalStorage::Create(FreshDirectory("slots")).value();
    if (kind != 0) slots = std::make_unique<StorageSlots>(storage.get(), "log", Name);
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<Slots> slots;
};

TEST_CASE("slots: each is filled once, whole, and the newest are listed first", "[commit_log]") {
  AnySlots any(GENERATE(0, 1, 2));
  Slots& slots = *any.slots;
  CHECK(slots.Newest(3).value().empty());
  CHECK(absl::IsNotFound(slots.Get(1).status()));
  for (const uint64_t number : {1, 2, 3, 9, 10, 100}) {
    REQUIRE(slots.Create(number, absl::StrCat("bytes of ", number)).ok());
  }

  CHECK(absl::IsAlreadyExists(slots.Create(9, "others")));
  CHECK(slots.Get(9).value() == "bytes of 9");
  CHECK(slots.Newest(3).value() == std::vector<uint64_t>{100, 10, 9});
  CHECK(slots.Newest(100).value() == std::vector<uint64_t>{100, 10, 9, 3, 2, 1});
  CHECK(slots.Create(11, "").ok());
  CHECK(slots.Get(11).value().empty());
  CHECK(slots.Remove(100).ok());
  CHECK(slots.Remove(100).ok());
  CHECK(absl::IsNotFound(slots.Get(100).status()));
  CHECK(slots.Newest(1).value() == std::vector<uint64_t>{11});
}

TEST_CASE("slots: a directory without its file is damage, not an empty slot", "[commit_log]") {
  MemoryStorage storage;
  StorageSlots slots(&storage, "log", Name);
  REQUIRE(slots.Create(1, "one").ok());
  REQUIRE(storage.RemoveTree("log/09999999999999999998/record.json").ok());
  CHECK(absl::IsDataLoss(slots.Get(1).status()));
  CHECK(absl::IsAlreadyExists(slots.Create(1, "others")));
}

std::set<std::string> NamesIn(Storage& storage) {
  std::set<std::string> names;
  const auto entries = storage.List("log");
  if (!entries.ok()) return names;
  for (const DirectoryEntry& entry : *entries) names.insert(entry.name);
  return names;
}

TEST_CASE("slots: the power goes at any operation, and a record is there whole or not at all", "[commit_log]") {
  const auto survival =
      GENERATE(MemoryStorage::Survival::kNothing, MemoryStorage::Survival::kEverything, MemoryStorage::Survival::kSome);
  int states = 0;
  for (int64_t at = 0;; ++at) {
    bool crashed = false;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      MemoryStorage storage;
      StorageSlots slots(&storage, "log", Name);
      std::vector<std::string> messages;
      CommitLog log(&slots, Name, /*kept=*/2);
      CHECK(absl::IsNotFound(log.Read(messages).status()));
      for (int i = 0; i < 3; ++i) REQUIRE(log.Append(log.head().value_or(CommitRecord())).ok());
      const CommitRecord before = *log.head();
      storage.SetFaults({{{at, StorageFaults::Kind::kCrash}}});
      CommitRecord next = before;
      next.set_change("the last one");
      const absl::StatusOr<Appended> appended = log.Append(next);
      crashed = crashed || storage.operations() > at;
      storage.Restart(survival, seed);

      CommitLog reader(&slots, Name, 2);
      const absl::StatusOr<CommitRecord> found = reader.Read(messages);
      REQUIRE(found.ok());
      CHECK(messages.empty());
      CHECK((found->change() == "the last one" || found->nonce() == before.nonce()));
      if (appended.ok()) CHECK(found->change() == "the last one");
      const std::vector<uint64_t> listed = slots.Newest(100).value();
      for (const uint64_t number : listed) CHECK(slots.Get(number).ok());
      // It goes on, and what was left is swept.
      REQUIRE(reader.Append(*found).value() == Appended::kDone);
      REQUIRE(slots.SweepLeftovers().ok());
      for (const std::string& name : NamesIn(storage)) CHECK(name.size() == 20);
      ++states;
    }
    if (!crashed) break;
  }
  CAPTURE(states);
  CHECK(states > 8 * 8);
}

// Processes that append to one log on a real file system, each reading anew when it is fenced.
TEST_CASE("slots: of processes that append at once each record is one's, and all follow each other", "[commit_log]") {
  constexpr int kProcesses = 4, kAppends = 25;
  const std::string root = FreshDirectory("race");
  REQUIRE(LocalStorage::Create(root).ok());
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const auto storage = LocalStorage::Open(root).value();
      StorageSlots slots(storage.get(), "log", Name);
      int done = 0;
      while (done < kAppends) {
        CommitLog log(&slots, Name);
        std::vector<std::string> messages;
        const auto read = log.Read(messages);
        if (!read.ok() && !absl::IsNotFound(read.status())) _exit(1);
        CommitRecord next = log.head().value_or(CommitRecord());
        next.set_change(absl::StrCat(i, "/", done));
        const auto appended = log.Append(next);
        if (!appended.ok()) _exit(2);
        done += *appended == Appended::kDone ? 1 : 0;
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const auto storage = LocalStorage::Open(root).value();
  StorageSlots slots(storage.get(), "log", Name);
  const std::vector<uint64_t> numbers = slots.Newest(100000).value();
  std::set<std::string> changes;
  std::string follows;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    CommitRecord record;
    REQUIRE(ReadSealedJson(slots.Get(*number).value(), "", CommitLog::kFormat, &record).ok());
    CHECK(record.follows() == follows);
    follows = record.nonce();
    changes.insert(record.change());
  }
  // A record that was fenced at its confirmation counts as well: its change came twice then.
  CHECK(changes.size() == kProcesses * kAppends);
}

}  // namespace
}  // namespace lockstep
