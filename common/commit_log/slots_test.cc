// What every implementation of Slots keeps, and what a crash leaves of those on a storage. Those in a real bucket run
// when LOCKSTEP_TEST_S3 has its URL.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/sealed.h"
#include "common/commit_log/commit_log.h"
#include "common/commit_log/memory_slots.h"
#include "common/commit_log/storage_slots.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/object_slots.h"
#include "common/object_store/s3_on_fake.h"
#include "common/storage/files.h"
#include "common/storage/forwarding_storage.h"
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

constexpr char kRealUrl[] = "LOCKSTEP_TEST_S3";
constexpr int kRealBucket = 5;

int Kinds() { return std::getenv(kRealUrl) == nullptr ? kRealBucket : kRealBucket + 1; }

std::unique_ptr<ObjectStore> OpenBucket() {
  return S3ObjectStore::Open(std::getenv(kRealUrl), ProcessEnvironment()).value();
}

// One of each kind.
struct AnySlots {
  explicit AnySlots(int kind) {
    if (kind == 0) slots = std::make_unique<MemorySlots>();
    if (kind == 1) storage = std::make_unique<MemoryStorage>();
    if (kind == 2) storage = LocalStorage::Create(FreshDirectory("slots")).value();
    if (kind == 3) objects = std::make_unique<MemoryObjectStore>();
    if (kind == 4) fake = std::make_unique<S3OnFake>();
    if (kind == kRealBucket) objects = OpenBucket();
    if (storage) slots = std::make_unique<StorageSlots>(storage.get(), "log", Name);
    if (objects)
      slots = std::make_unique<ObjectSlots>(objects.get(), absl::StrCat("slots-", absl::ToUnixMicros(absl::Now())));
    if (fake) slots = std::make_unique<ObjectSlots>(fake->store.get(), "log");
  }
  ~AnySlots() {
    if (!objects) return;
    const std::vector<uint64_t> numbers = slots->Newest(100).value();
    for (const uint64_t number : numbers) slots->Remove(number).IgnoreError();
  }
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ObjectStore> objects;
  std::unique_ptr<S3OnFake> fake;
  std::unique_ptr<Slots> slots;
};

TEST_CASE("slots: each is filled once, whole, and the newest are listed first", "[commit_log]") {
  AnySlots any(GENERATE(range(0, Kinds())));
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

// Removes file by file, as disks do: `paused` is called when the record in a directory went, and the directory did not.
struct PausedRemoval final : ForwardingStorage {
  using ForwardingStorage::ForwardingStorage;
  absl::Status RemoveTree(absl::string_view path) override {
    const absl::Status removed = ForwardingStorage::RemoveTree(JoinPath(path, "record.json"));
    paused();
    return removed.ok() ? ForwardingStorage::RemoveTree(path) : removed;
  }
  std::function<void()> paused = [] {};
};

TEST_CASE("slots: a record that gets its slot while another process sweeps is whole, or does not get it",
          "[commit_log]") {
  MemoryStorage memory;
  PausedRemoval storage(memory);
  StorageSlots slots(&storage, "log", Name);
  REQUIRE(slots.Create(1, "one").ok());
  REQUIRE(memory.CreateDirectoryExclusive("log/tmp-new-7").ok());
  REQUIRE(WriteNewFile(memory, "log/tmp-new-7/record.json", "two", Access::kShared).ok());
  storage.paused = [&] { memory.Rename("log/tmp-new-7", "log/09999999999999999997").IgnoreError(); };

  REQUIRE(slots.SweepLeftovers().ok());

  const absl::StatusOr<std::string> second = slots.Get(2);
  CHECK((absl::IsNotFound(second.status()) || second.value() == "two"));
  CHECK(slots.Get(1).value() == "one");
}

std::string SealedRecord(int64_t number) {
  CommitRecord record;
  record.set_format_version(CommitLog::kFormat);
  record.set_number(number);
  record.set_nonce("before");
  return SealJson(&record);
}

// `paused` is called once, when a record is written and does not have its slot yet.
struct PausedRename final : ForwardingStorage {
  using ForwardingStorage::ForwardingStorage;
  absl::Status Rename(absl::string_view from, absl::string_view to) override {
    std::exchange(paused, [] {})();
    return ForwardingStorage::Rename(from, to);
  }
  std::function<void()> paused = [] {};
};

TEST_CASE("slots: who wakes up before its record and finds it swept away is fenced", "[commit_log]") {
  const int before = GENERATE(0, 1);  // records when it reads the log
  MemoryStorage memory;
  PausedRename storage(memory);
  StorageSlots mine(&storage, "log", Name), others(&memory, "log", Name);
  CommitLog log(&mine, Name), other(&others, Name);
  std::vector<std::string> messages;
  if (before == 1) REQUIRE(others.Create(1, SealedRecord(1)).ok());
  for (CommitLog* each : {&log, &other}) CHECK(each->Read(messages).ok() == (before == 1));
  storage.paused = [&] {
    REQUIRE(other.Append(CommitRecord()).value() == Appended::kDone);
    REQUIRE(others.SweepLeftovers().ok());
  };

  const absl::StatusOr<Appended> appended = log.Append(CommitRecord());

  REQUIRE(appended.status() == absl::OkStatus());
  CHECK(*appended == Appended::kFenced);
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

// What an appending process sees of the slots.
struct OpenSlots {
  std::unique_ptr<Storage> storage;
  std::unique_ptr<ObjectStore> objects;
  std::unique_ptr<Slots> slots;
};

// Appends in a process of its own, reading anew when it is fenced. The code that it ends with.
int AppendAll(OpenSlots open, int process, int appends) {
  int done = 0;
  while (done < appends) {
    CommitLog log(open.slots.get(), Name);
    std::vector<std::string> messages;
    const auto read = log.Read(messages);
    if (!read.ok() && !absl::IsNotFound(read.status())) return 1;
    CommitRecord next = log.head().value_or(CommitRecord());
    next.set_change(absl::StrCat(process, "/", done));
    const auto appended = log.Append(next);
    if (!appended.ok()) return 2;
    done += *appended == Appended::kDone ? 1 : 0;
  }
  return 0;
}

// `open` is called in each process.
template <typename Open>
void Race(const Open& open, int appends) {
  constexpr int kProcesses = 4;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(AppendAll(open(), i, appends));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
  const OpenSlots opened = open();
  const std::vector<uint64_t> numbers = opened.slots->Newest(100000).value();
  std::set<std::string> changes;
  std::string follows;
  for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
    CommitRecord record;
    REQUIRE(ReadSealedJson(opened.slots->Get(*number).value(), "", CommitLog::kFormat, &record).ok());
    CHECK(record.follows() == follows);
    follows = record.nonce();
    changes.insert(record.change());
  }
  // A record that was fenced at its confirmation counts as well: its change came twice then.
  CHECK(changes.size() == static_cast<size_t>(kProcesses * appends));
  if (opened.objects) {
    for (const uint64_t number : numbers) opened.slots->Remove(number).IgnoreError();
  }
}

TEST_CASE("slots: of processes that append at once each record is one's, and all follow each other", "[commit_log]") {
  const std::string root = FreshDirectory("race");
  REQUIRE(LocalStorage::Create(root).ok());
  const auto open = [&root] {
    OpenSlots opened;
    opened.storage = LocalStorage::Open(root).value();
    opened.slots = std::make_unique<StorageSlots>(opened.storage.get(), "log", Name);
    return opened;
  };
  Race(open, 25);
}

TEST_CASE("slots: processes append at once to a log in a bucket", "[commit_log]") {
  if (std::getenv(kRealUrl) == nullptr) {
    std::cout << "SKIPPED: " << kRealUrl << " names no bucket\n";
    return;
  }
  const std::string folder = absl::StrCat("race-", absl::ToUnixMicros(absl::Now()));
  const auto open = [&folder] {
    OpenSlots opened;
    opened.objects = OpenBucket();
    opened.slots = std::make_unique<ObjectSlots>(opened.objects.get(), folder);
    return opened;
  };
  Race(open, 10);
}

}  // namespace
}  // namespace lockstep
