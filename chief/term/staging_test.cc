// A staging directory that somebody removed under a living chief is made again, and never by one that was overtaken.
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

TermOwner StagingOwner(int64_t pid) {
  TermOwner owner;
  owner.set_pid(pid);
  owner.set_host("alpha");
  return owner;
}

absl::Status Publish(TermHold& hold, const std::string& name) {
  const absl::StatusOr<std::string> staged = hold.Scratch("save");
  if (!staged.ok()) return staged.status();
  absl::Status status = hold.storage().CreateDirectoryExclusive(*staged);
  if (status.ok()) status = hold.storage().Rename(*staged, JoinPath(layout::kCheckpoints, name));
  return hold.Explain(status);
}

TEST_CASE("staging: one that was removed by hand is made again, and the chief goes on", "[term]") {
  for (const std::string removed : {"staging", "staging/term-000001"}) {
    CAPTURE(removed);
    MemoryStorage storage;
    StorageTermRegistry registry(storage);
    auto hold = TermHold::Take(storage, registry, StagingOwner(1)).value();

    REQUIRE(storage.RemoveTree(removed).ok());
    CHECK(Publish(*hold, "first") == absl::OkStatus());
    REQUIRE(storage.RemoveTree(removed).ok());
    CHECK(hold->Replace(layout::kLatest, "first\n") == absl::OkStatus());
    REQUIRE(storage.RemoveTree(removed).ok());
    CHECK(hold->KeepCopy(layout::kLatest, "bad").ok());
    REQUIRE(storage.RemoveTree(removed).ok());
    REQUIRE(storage.RemoveTree(layout::kSetAside).ok());
    CHECK(hold->SetAside("checkpoints/first", "bad").ok());

    CHECK(storage.Exists("set_aside/first-bad-term-000001").value());
    CHECK(hold->CheckCurrent().ok());
    hold.reset();
    REQUIRE(TermHold::Take(storage, registry, StagingOwner(2)).ok());
    CHECK(storage.List(layout::kStaging).value().size() == 1);
  }
}

TEST_CASE("staging: of a chief that makes it again and a newer one, at every interleaving, the newer can publish",
          "[term]") {
  int overtaken = 0;
  for (int64_t at = 0; at < 20; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    StorageTermRegistry registry(storage);
    auto older = TermHold::Take(storage, registry, StagingOwner(1)).value();
    REQUIRE(storage.RemoveTree(layout::kStaging).ok());
    std::unique_ptr<TermHold> newer;
    storage.SetFaults({});
    storage.SetHook([&](int64_t number, absl::string_view) {
      if (number != at) return;
      storage.SetHook(nullptr);
      storage.DropLocks();  // the newer chief is of another machine
      newer = TermHold::Take(storage, registry, StagingOwner(2)).value();
    });

    const absl::Status by_older = Publish(*older, "older");

    if (newer == nullptr) continue;  // it was through before
    ++overtaken;
    // Overtaken after its rename took effect: the newer one saw the result when it scanned.
    const bool seen = storage.Exists("checkpoints/older").value();
    CHECK((IsFenced(by_older) || seen));
    CHECK(Publish(*newer, "newer") == absl::OkStatus());
    CHECK(IsFenced(Publish(*older, "again")));
    CHECK(IsFenced(older->Replace(layout::kLatest, "again\n")));
    CHECK_FALSE(storage.Exists("checkpoints/again").value());
  }
  CHECK(overtaken > 5);
}

TEST_CASE("staging: what was made while a newer chief claimed is never used", "[term]") {
  bool made = false;
  for (int64_t at = 0; at < 4; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    StorageTermRegistry registry(storage);
    auto hold = TermHold::Take(storage, registry, StagingOwner(1)).value();
    REQUIRE(storage.RemoveTree(layout::kStaging).ok());
    storage.SetFaults({});
    // The newer chief has claimed and does not come to look for older staging directories.
    storage.SetHook([&](int64_t number, absl::string_view) {
      if (number != at) return;
      storage.SetHook(nullptr);
      REQUIRE(registry.Claim(StagingOwner(2)).value() == 2);
    });

    CHECK(IsFenced(hold->Scratch("save").status()));

    made = made || storage.Exists(layout::StagingPath(hold->term())).value();
    CHECK(IsFenced(hold->Replace(layout::kLatest, "x\n")));
    CHECK(IsFenced(hold->SetAside(layout::kCheckpoints, "bad").status()));
    CHECK_FALSE(storage.Exists(layout::kLatest).value());
  }
  CHECK(made);
}

TEST_CASE("staging: a failure while it is made again at any operation is made good by the next attempt", "[term]") {
  int failures = 0;
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    StorageTermRegistry registry(storage);
    auto hold = TermHold::Take(storage, registry, StagingOwner(1)).value();
    REQUIRE(storage.RemoveTree(layout::kStaging).ok());
    StorageFaults faults;
    faults.at[at] = StorageFaults::Kind::kIoError;
    storage.SetFaults(faults);

    finished = hold->Scratch("save").ok();

    storage.SetFaults({});
    failures += finished ? 0 : 1;
    CHECK(Publish(*hold, "first") == absl::OkStatus());
  }
  CHECK(failures > 3);
}

TEST_CASE("staging: nothing is made in a directory that is not the one that was claimed", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto hold = TermHold::Take(storage, registry, StagingOwner(1)).value();
  // An unmounted file system: all of it is gone, and may come back.
  REQUIRE(storage.RemoveTree(layout::kStaging).ok());
  REQUIRE(storage.RemoveTree(layout::kChief).ok());

  const absl::Status replaced = hold->Replace(layout::kLatest, "x\n");

  CHECK(replaced.code() == absl::StatusCode::kNotFound);
  CHECK_THAT(std::string(replaced.message()), Contains("chief/term-000001") && Contains("Mount it again"));
  CHECK_FALSE(storage.Exists(layout::kStaging).value());
  CHECK(absl::IsNotFound(hold->EnsureDirectory(layout::kPlans + std::string("-new"))));
}

}  // namespace
}  // namespace lockstep::chief
