#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>

#include "chief/term/directory_mark.h"
#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "chief/term/token.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/forwarding_storage.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

TermOwner Owner(int64_t pid, const std::string& host = "alpha") {
  TermOwner owner;
  owner.set_pid(pid);
  owner.set_host(host);
  return owner;
}

// A storage on which locks do not exist, as on some network mounts: then only the term decides.
class Unlocked final : public ForwardingStorage {
 public:
  using ForwardingStorage::ForwardingStorage;
  absl::StatusOr<std::unique_ptr<StorageLock>> Lock(absl::string_view, absl::string_view) override {
    return absl::UnimplementedError("no locks here");
  }
};

TEST_CASE("term: a second chief on one directory is told who holds it, and changes nothing", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto first = TermHold::Take(storage, registry, Owner(17));
  REQUIRE(first.status() == absl::OkStatus());

  const auto second = TermHold::Take(storage, registry, Owner(18));

  CHECK(second.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_FALSE(IsFenced(second.status()));
  CHECK_THAT(std::string(second.status().message()), Contains("pid 17 on host alpha") && Contains("--dir"));
  CHECK(registry.Newest().value() == 1);
  CHECK((*first)->CheckCurrent().ok());
}

TEST_CASE("term: a newer chief fences the older one, which can publish nothing more", "[term]") {
  MemoryStorage memory;
  Unlocked storage(memory);
  StorageTermRegistry registry(storage);
  auto older = TermHold::Take(storage, registry, Owner(17)).value();
  const std::string half_written = older->Scratch("save").value();
  REQUIRE(storage.CreateDirectoryExclusive(half_written).ok());
  auto file = storage.CreateFile(JoinPath(half_written, "shard"), Access::kShared).value();

  auto newer = TermHold::Take(storage, registry, Owner(18, "beta")).value();

  CHECK(newer->term() == 2);
  CHECK(IsFenced(older->CheckCurrent()));
  CHECK_THAT(std::string(older->CheckCurrent().message()), Contains("pid 18 on host beta") && Contains("term 2"));
  CHECK(file->Append("into a file that nobody can see").ok());
  CHECK_FALSE(storage.Rename(half_written, "checkpoints/step-000000001").ok());
  CHECK(IsFenced(older->Explain(storage.Rename(half_written, "checkpoints/step-000000001"))));
  CHECK(IsFenced(WriteAddress(*older, "stale:1")));
  CHECK(IsFenced(older->SetAside("checkpoints", "bad").status()));
  CHECK_FALSE(storage.Exists("staging/term-000001").value());
  CHECK(storage.List(layout::StagingPath(newer->term())).value().empty());
  CHECK(WriteAddress(*newer, "fresh:1").ok());
  CHECK(ReadAddress(storage).value() == "fresh:1");
}

TEST_CASE("term: of two claims in a race, at every interleaving, exactly the newer can publish", "[term]") {
  // The second chief runs in full at one operation of the first one's claim, or of its publishing afterwards.
  int overtaken = 0;
  for (int64_t at = 0; at < 40; ++at) {
    CAPTURE(at);
    MemoryStorage memory;
    Unlocked storage(memory);
    StorageTermRegistry registry(storage);
    REQUIRE(storage.CreateDirectories("checkpoints").ok());
    std::unique_ptr<TermHold> second;
    memory.SetFaults({});
    memory.SetHook([&](int64_t number, absl::string_view) {
      if (number != at) return;
      memory.SetHook(nullptr);
      second = TermHold::Take(storage, registry, Owner(2)).value();
    });

    auto first = TermHold::Take(storage, registry, Owner(1));
    const auto publish = [&](TermHold& hold, const std::string& name) {
      const absl::StatusOr<std::string> staged = hold.Scratch("save");
      if (!staged.ok()) return staged.status();
      absl::Status status = storage.CreateDirectoryExclusive(*staged);
      if (status.ok()) status = storage.Rename(*staged, JoinPath(layout::kCheckpoints, name));
      return hold.Explain(status);
    };
    const absl::Status by_first = first.ok() ? publish(**first, "first") : first.status();

    if (second == nullptr) continue;  // the first one was through before
    const bool first_is_newer = first.ok() && (*first)->term() > second->term();
    if (first_is_newer) {
      CHECK(by_first.ok());
      CHECK(IsFenced(publish(*second, "second")));
    } else {
      ++overtaken;
      // Overtaken after its rename took effect: the newer one saw the result when it scanned.
      const bool seen = storage.Exists("checkpoints/first").value();
      CHECK((IsFenced(by_first) || seen));
      CHECK(publish(*second, "second").ok());
      CHECK(IsFenced(first.ok() ? publish(**first, "again") : first.status()));
    }
  }
  CHECK(overtaken > 5);
}

TEST_CASE("term: a claim that is cut off by a crash at any operation leaves the next one free", "[term]") {
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    for (const auto survival :
         {MemoryStorage::Survival::kNothing, MemoryStorage::Survival::kEverything, MemoryStorage::Survival::kSome}) {
      CAPTURE(at);
      MemoryStorage storage;
      StorageTermRegistry registry(storage);
      int64_t earlier = 0;
      {
        auto before = TermHold::Take(storage, registry, Owner(1)).value();
        earlier = before->term();
        REQUIRE(WriteNewFile(storage, before->Scratch("left").value(), "x", Access::kShared).ok());
      }
      StorageFaults faults;
      faults.at[at] = StorageFaults::Kind::kCrash;
      storage.SetFaults(faults);

      auto cut = TermHold::Take(storage, registry, Owner(2));
      finished = cut.ok();
      const int64_t claimed = cut.ok() ? (*cut)->term() : earlier;
      cut = absl::CancelledError("");
      storage.Restart(survival, static_cast<uint64_t>(at));
      auto next = TermHold::Take(storage, registry, Owner(3));

      REQUIRE(next.status() == absl::OkStatus());
      CHECK((*next)->term() > claimed);
      CHECK((*next)->CheckCurrent().ok());
      CHECK(storage.List(layout::kStaging).value().size() == 1);
      CHECK(storage.List(layout::StagingPath((*next)->term())).value().empty());
    }
  }
}

TEST_CASE("term: a claim whose record was damaged hinders nobody", "[term]") {
  MemoryStorage memory;
  Unlocked storage(memory);
  StorageTermRegistry older(storage);
  const auto claim = [&](JobLog& log, int64_t pid) {
    LogTermRegistry registry(log, older);
    return TermHold::Take(storage, registry, Owner(pid)).status();
  };
  JobLog first(storage), second(storage), third(storage);
  REQUIRE(claim(first, 17).ok());
  REQUIRE(claim(second, 18).ok());
  const std::string newest = storage.List(layout::kLog).value().front().name;
  REQUIRE(memory.FlipBit(JoinPath(JoinPath(layout::kLog, newest), "record.json"), 40, 0).ok());

  REQUIRE(claim(third, 19) == absl::OkStatus());

  CHECK(third.NewestTerm().value() == 3);
  CHECK(storage.List(layout::kStaging).value().size() == 1);
  CHECK(IsFenced(second.Change("x", [](CommitRecord&) {})));
}

TEST_CASE("term: what was being set aside when its chief died arrives in its place", "[term]") {
  for (int64_t at = 0; at < 4; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    StorageTermRegistry registry(storage);
    auto hold = TermHold::Take(storage, registry, Owner(1)).value();
    REQUIRE(storage.CreateDirectories("checkpoints/step-000000004").ok());
    REQUIRE(WriteNewFile(storage, "checkpoints/step-000000004/f", "x", Access::kShared).ok());
    REQUIRE(storage.SyncDirectory("checkpoints/step-000000004").ok());
    StorageFaults faults;
    faults.at[at] = StorageFaults::Kind::kCrash;
    storage.SetFaults(faults);

    const bool moved = hold->SetAside("checkpoints/step-000000004", "bad").ok();
    hold.reset();
    storage.Restart(MemoryStorage::Survival::kSome, static_cast<uint64_t>(at));
    REQUIRE(TermHold::Take(storage, registry, Owner(2)).ok());

    const bool published = storage.Exists("checkpoints/step-000000004/f").value();
    const bool aside = storage.Exists("set_aside/step-000000004-bad-term-000001/f").value();
    CHECK(published != aside);
    if (moved) CHECK(aside);
  }
}

TEST_CASE("term: the token is made once, private, and kept by later chiefs", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto hold = TermHold::Take(storage, registry, Owner(1)).value();
  CHECK(ReadToken(storage).status().code() == absl::StatusCode::kNotFound);

  const std::string token = LoadOrMakeToken(*hold).value();
  hold.reset();
  hold = TermHold::Take(storage, registry, Owner(2)).value();

  CHECK(token.size() == 64);
  CHECK(LoadOrMakeToken(*hold).value() == token);
  CHECK(ReadToken(storage).value() == token);
  for (const std::string& other : {std::string("short\n"), std::string(5000, 'x')}) {
    REQUIRE(hold->Replace(layout::kToken, other).ok());
    CHECK(LoadOrMakeToken(*hold).status().code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(LoadOrMakeToken(*hold).status().message()), Contains("Remove it"));
  }
}

// A directory of this machine, removed when dropped.
class LocalPlace {
 public:
  LocalPlace() {
    const char* base = std::getenv("TEST_TMPDIR");
    path_ = std::string(base != nullptr ? base : "/tmp") + "/term-XXXXXX";
    REQUIRE(mkdtemp(path_.data()) != nullptr);
  }
  ~LocalPlace() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST_CASE("address: a copy of the directory does not lead to the chief of the original", "[term]") {
  const LocalPlace place;
  const auto original = LocalStorage::Create(place.path() + "/original").value();
  StorageTermRegistry registry(*original);
  const auto hold = TermHold::Take(*original, registry, Owner(1)).value();
  REQUIRE(WriteAddress(*hold, "127.0.0.1:4242").ok());
  const std::string content = ReadWholeFile(*original, layout::kAddress, 4096).value();
  std::filesystem::copy(place.path() + "/original", place.path() + "/copy", std::filesystem::copy_options::recursive);
  const auto copy = LocalStorage::Open(place.path() + "/copy").value();

  CHECK(ReadAddress(*original).value() == "127.0.0.1:4242");
  CHECK(content.substr(0, 15) == "127.0.0.1:4242\n");
  CHECK(ReadAddress(*copy).status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(ReadAddress(*copy).status().message()), Contains("copy/chief/address"));

  // A directory that was moved is the same one; an address without a lock beside it is taken as it is.
  std::filesystem::rename(place.path() + "/original", place.path() + "/moved");
  CHECK(ReadAddress(*LocalStorage::Open(place.path() + "/moved").value()).value() == "127.0.0.1:4242");
  std::filesystem::remove(place.path() + "/copy/chief/lock");
  CHECK(ReadAddress(*copy).value() == "127.0.0.1:4242");
}

TEST_CASE("address: one that was damaged is named, and a single line is read", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  const auto hold = TermHold::Take(storage, registry, Owner(1)).value();
  REQUIRE(WriteAddress(*hold, "127.0.0.1:4242").ok());
  REQUIRE(storage.FlipBit(layout::kAddress, 11, 0).ok());
  CHECK(ReadAddress(storage).status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(ReadAddress(storage).status().message()), Contains("chief/address"));

  REQUIRE(hold->Replace(layout::kAddress, "host:5\n").ok());

  CHECK(ReadAddress(storage).value() == "host:5");
}

TEST_CASE("claim: of a copy that there is no room for, the next chief keeps no part", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto hold = TermHold::Take(storage, registry, Owner(1)).value();
  REQUIRE(WriteNewFile(storage, layout::kMark, "damaged", Access::kShared).ok());

  storage.SetFaults({.at = {{1, StorageFaults::Kind::kDiskFull}}});  // 0 creates the copy, 1 writes it
  CHECK(absl::IsResourceExhausted(hold->KeepCopy(layout::kMark, "bad").status()));
  storage.SetFaults({});
  hold.reset();
  hold = TermHold::Take(storage, registry, Owner(2)).value();

  CHECK(storage.List(layout::kSetAside)->empty());
}

TEST_CASE("lock: a link in its place is not followed", "[term]") {
  const LocalPlace place;
  const auto storage = LocalStorage::Create(place.path() + "/job").value();
  REQUIRE(WriteNewFile(*storage, "victim", "kept", Access::kShared).ok());
  REQUIRE(storage->CreateDirectories(layout::kChief).ok());
  std::filesystem::create_symlink("../victim", place.path() + "/job/chief/lock");
  StorageTermRegistry registry(*storage);

  const auto hold = TermHold::Take(*storage, registry, Owner(1));

  CHECK(hold.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK_THAT(std::string(hold.status().message()),
             Contains("chief/lock is a symbolic link") && !Contains("another chief"));
  CHECK(ReadWholeFile(*storage, "victim", 100).value() == "kept");
}

TEST_CASE("token: one that others may read is refused", "[term]") {
  const LocalPlace place;
  const auto storage = LocalStorage::Create(place.path()).value();
  StorageTermRegistry registry(*storage);
  const auto hold = TermHold::Take(*storage, registry, Owner(1)).value();
  REQUIRE(LoadOrMakeToken(*hold).ok());
  REQUIRE(LoadOrMakeToken(*hold).ok());
  const std::string token = place.path() + "/chief/token";

  REQUIRE(chmod(token.c_str(), 0640) == 0);

  CHECK(LoadOrMakeToken(*hold).status().code() == absl::StatusCode::kPermissionDenied);
  CHECK_THAT(std::string(LoadOrMakeToken(*hold).status().message()), Contains("chmod 600"));
  REQUIRE(chmod(token.c_str(), 0600) == 0);
}

TEST_CASE("token: one that belongs to another user is refused", "[term]") {
  const LocalPlace place;
  const auto storage = LocalStorage::Create(place.path()).value();
  StorageTermRegistry registry(*storage);
  const auto hold = TermHold::Take(*storage, registry, Owner(1)).value();
  REQUIRE(LoadOrMakeToken(*hold).ok());
  const std::string token = place.path() + "/chief/token";

  if (chown(token.c_str(), 65534, 65534) != 0) {
    std::cout << "SKIPPED: files of another user need the right to give files away\n";
    return;
  }

  CHECK(LoadOrMakeToken(*hold).status().code() == absl::StatusCode::kPermissionDenied);
  CHECK_THAT(std::string(LoadOrMakeToken(*hold).status().message()), Contains("65534") && Contains("Remove it"));
}

TEST_CASE("mark: what a directory belongs to is read and compared", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto hold = TermHold::Take(storage, registry, Owner(1)).value();
  CHECK_FALSE(ReadDirectoryMark(storage)->has_value());

  REQUIRE(hold->Replace(layout::kMark, "{\"format_version\": 1, \"job_id\": \"job-1\", \"lineage\": \"l\"}").ok());

  const DirectoryMark read = **ReadDirectoryMark(storage);
  CHECK(CheckSameJob(storage, read, "job-1").ok());
  const absl::Status other = CheckSameJob(storage, read, "job-2");
  CHECK(other.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(other.message()), Contains("job-1") && Contains("job-2") && Contains("--dir"));
}

TEST_CASE("mark: a directory whose mark is lost, newer or damaged is refused", "[term]") {
  MemoryStorage storage;
  StorageTermRegistry registry(storage);
  auto hold = TermHold::Take(storage, registry, Owner(1)).value();
  REQUIRE(storage.CreateDirectories("checkpoints/step-000000000").ok());
  CHECK_THAT(std::string(ReadDirectoryMark(storage).status().message()), Contains("LOCKSTEP is missing"));

  REQUIRE(hold->Replace(layout::kMark, "{\"format_version\": 3, \"job_id\": \"j\", \"lineage\": \"l\"}").ok());
  CHECK(ReadDirectoryMark(storage).status().code() == absl::StatusCode::kFailedPrecondition);
  REQUIRE(MarkAsLogged(*hold).ok());
  CHECK(ReadDirectoryMark(storage).status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(ReadDirectoryMark(storage).status().message()), Contains("log is gone"));
  REQUIRE(hold->Replace(layout::kMark, "{\"format_version\": 1, \"job_id\": \"j\"").ok());
  CHECK(ReadDirectoryMark(storage).status().code() == absl::StatusCode::kDataLoss);
  REQUIRE(hold->Replace(layout::kMark, "{\"format_version\": 1}").ok());
  CHECK(ReadDirectoryMark(storage).status().code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace lockstep::chief
