#include "common/storage/memory/memory_storage.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "common/storage/files.h"

namespace lockstep {
namespace {

using Catch::Contains;
using Survival = MemoryStorage::Survival;

std::string Read(const Storage& storage, absl::string_view path) {
  const auto content = ReadWholeFile(storage, path, 1 << 20);
  return content.ok() ? *content : "(" + std::string(content.status().message()) + ")";
}

TEST_CASE("memory storage: what was not synced is lost with the power, what was is kept", "[storage]") {
  MemoryStorage s;
  REQUIRE(WriteNewFile(s, "named", "content", Access::kShared).ok());
  REQUIRE(s.SyncDirectory("").ok());
  REQUIRE(WriteNewFile(s, "unnamed", "content", Access::kShared).ok());  // its name was not synced
  auto file = s.CreateFile("growing", Access::kShared).value();
  REQUIRE(file->Append("synced").ok());
  REQUIRE(file->Sync().ok());
  REQUIRE(s.SyncDirectory("").ok());
  REQUIRE(file->Append(" and not").ok());
  REQUIRE(s.CreateDirectories("made/durably").ok());
  REQUIRE(WriteNewFile(s, "late", "x", Access::kShared).ok());

  s.Restart(Survival::kNothing, 1);

  CHECK(Read(s, "named") == "content");
  CHECK(Read(s, "unnamed") == "content");  // the directory was synced after it
  CHECK(Read(s, "growing") == "synced");
  CHECK(s.Exists("made/durably").value());
  CHECK_FALSE(s.Exists("late").value());
  CHECK(file->Append("x").code() == absl::StatusCode::kAborted);
}

TEST_CASE("memory storage: of unsynced changes, some survive, as the seed says, and renames whole", "[storage]") {
  std::set<std::string> outcomes;
  for (uint64_t seed = 0; seed < 64; ++seed) {
    MemoryStorage s;
    REQUIRE(WriteNewFile(s, "old", "before", Access::kShared).ok());
    REQUIRE(s.CreateDirectoryExclusive("d").ok());
    REQUIRE(s.SyncDirectory("").ok());
    auto file = s.CreateFile("d/new", Access::kShared).value();
    REQUIRE(file->Append("0123456789").ok());

    s.Restart(Survival::kSome, seed);

    CHECK(Read(s, "old") == "before");
    const std::string content = s.Exists("d/new").value() ? Read(s, "d/new") : "gone";
    if (content != "gone") {
      const std::string whole = "0123456789";
      const bool prefix = content == whole.substr(0, content.size());
      const bool torn = content == std::string(content.size(), '\0');
      CHECK((prefix || torn));
    }
    outcomes.insert(content);
  }
  CHECK(outcomes.contains("gone"));
  CHECK(outcomes.contains("0123456789"));
  CHECK(outcomes.size() > 5);
}

TEST_CASE("memory storage: a replacement is durable when it returns", "[storage]") {
  MemoryStorage s;
  REQUIRE(ReplaceFile(s, "tmp", "file", "one", Access::kShared).ok());
  REQUIRE(ReplaceFile(s, "tmp", "file", "two", Access::kShared).ok());

  s.Restart(Survival::kNothing, 1);

  CHECK(Read(s, "file") == "two");
  CHECK_FALSE(s.Exists("tmp").value());
}

TEST_CASE("memory storage: faults come at the planned operation, once", "[storage]") {
  MemoryStorage s;
  StorageFaults faults;
  faults.at[2] = StorageFaults::Kind::kIoError;
  faults.at[4] = StorageFaults::Kind::kCrash;
  s.SetFaults(faults);
  auto file = s.CreateFile("f", Access::kShared).value();  // 0

  CHECK(file->Append("ab").ok());                                        // 1
  CHECK(file->Append("cdef").code() == absl::StatusCode::kUnavailable);  // 2: half is there
  CHECK(file->Sync().ok());                                              // 3
  CHECK(s.SyncDirectory("").code() == absl::StatusCode::kAborted);       // 4
  CHECK(s.Exists("f").status().code() == absl::StatusCode::kAborted);
  s.Restart(Survival::kEverything, 1);

  CHECK(Read(s, "f") == "abcd");
  CHECK(s.SyncDirectory("").ok());
}

TEST_CASE("memory storage: it is full when it is full", "[storage]") {
  MemoryStorage s;
  StorageFaults faults;
  faults.capacity_bytes = 10;
  s.SetFaults(faults);
  REQUIRE(WriteNewFile(s, "a", "12345678", Access::kShared).ok());
  CHECK(s.FreeBytes().value() == 2);

  const absl::Status full = WriteNewFile(s, "b", "1234", Access::kShared);

  CHECK(full.code() == absl::StatusCode::kResourceExhausted);
  CHECK_THAT(std::string(full.message()), Contains("needed 4 bytes") && Contains("available 2 bytes"));
  REQUIRE(s.RemoveTree("a").ok());
  REQUIRE(s.RemoveTree("b").ok());
  CHECK(s.FreeBytes().value() == 10);
}

}  // namespace
}  // namespace lockstep
