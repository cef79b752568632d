#include "chief/standby/stand_by.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/other_chief.h"
#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
#include "common/storage/forwarding_storage.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

TEST_CASE("standby: what a directory shows of its chief changes with each term, record, beat and end", "[chief]") {
  MemoryStorage storage;
  CHECK(LookAtJob(storage).value() == JobSight());
  JobLog log(storage);
  StorageTermRegistry older(storage);
  LogTermRegistry registry(log, older);
  REQUIRE(registry.Claim(TermOwner()).value() == 1);
  CHECK(LookAtJob(storage).value() == JobSight{.term = 1, .record = 1});

  REQUIRE(storage.CreateDirectories(layout::kChief).ok());
  REQUIRE(WriteNewFile(storage, layout::kAlive, "term 1, beat 1\n", Access::kShared).ok());
  CHECK(LookAtJob(storage).value() == JobSight{.term = 1, .record = 1, .beat = "term 1, beat 1\n"});

  const auto end_with = [](int code) {
    return [code](CommitRecord& record) {
      record.set_ended(true);
      record.set_exit_code(code);
    };
  };
  for (const int code : {kExitDone, kExitPreempted}) {
    REQUIRE(log.Change("ended", end_with(code)).ok());
    CHECK(LookAtJob(storage)->ended_with == code);
  }

  REQUIRE(registry.Claim(TermOwner()).value() == 2);  // the next chief has not ended
  CHECK(LookAtJob(storage)->term == 2);
  CHECK_FALSE(LookAtJob(storage)->ended_with.has_value());
}

// A directory whose chief ends while it is being looked at.
class EndsMeanwhile final : public ForwardingStorage {
 public:
  EndsMeanwhile(Storage& below, std::function<void()> end) : ForwardingStorage(below), end_(std::move(end)) {}
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenFile(absl::string_view path) const override {
    if (path == layout::kAlive) end_();
    return ForwardingStorage::OpenFile(path);
  }

 private:
  const std::function<void()> end_;
};

TEST_CASE("standby: a chief that ends in the middle of a look is not taken for one that was killed", "[chief]") {
  const std::string place = absl::StrCat(std::getenv("TEST_TMPDIR"), "/ends-", getpid());
  const auto storage = LocalStorage::Create(place).value();
  REQUIRE(storage->CreateDirectories(layout::kChief).ok());
  auto lock = storage->Lock(layout::kLock, LockText(getpid(), "alpha")).value();
  JobLog log(*storage);
  StorageTermRegistry older(*storage);
  TermOwner owner;
  owner.set_pid(getpid());
  owner.set_host("alpha");
  REQUIRE(LogTermRegistry(log, older).Claim(owner).ok());
  StandbyWatch watch;
  const absl::Time now = absl::UnixEpoch();
  REQUIRE(LookAtJob(*storage)->lock_holder.has_value());
  REQUIRE(watch.Look(now, LookAtJob(*storage).value()) == StandbyWatch::Verdict::kWatching);

  EndsMeanwhile looked(*storage, [&] {
    REQUIRE(log.Change("ended", [](CommitRecord& record) { record.set_ended(true); }).ok());
    lock.reset();
  });
  const auto verdict = watch.Look(now + absl::Seconds(1), LookAtJob(looked).value());

  CHECK(verdict == StandbyWatch::Verdict::kEnd);
  CHECK(watch.exit_code() == kExitDone);
}

TEST_CASE("standby: the lock of a chief that was followed while it stood still says nothing of the next one",
          "[chief]") {
  const std::string place = absl::StrCat(std::getenv("TEST_TMPDIR"), "/stood-", getpid());
  const auto storage = LocalStorage::Create(place).value();
  REQUIRE(storage->CreateDirectories(layout::kChief).ok());
  const auto lock = storage->Lock(layout::kLock, LockText(getpid(), "alpha")).value();
  JobLog log(*storage);
  StorageTermRegistry older(*storage);
  TermOwner next;
  next.set_pid(getpid() + 1);
  next.set_host("alpha");
  REQUIRE(LogTermRegistry(log, older).Claim(next).ok());

  CHECK_FALSE(LookAtJob(*storage)->lock_holder.has_value());
}

TEST_CASE("standby: of two that saw the same chief end, the second to claim stands by again", "[chief]") {
  MemoryStorage storage;
  StorageTermRegistry older(storage);
  JobLog log(storage), first_log(storage), second_log(storage);
  TermOwner first, second;
  first.set_pid(7);
  second.set_pid(8);
  int64_t seen = 0;
  SECTION("of a job that no chief has begun") {}
  SECTION("of a job whose chief ended") { seen = LogTermRegistry(log, older).Claim(TermOwner()).value(); }

  CHECK(LogTermRegistry(first_log, older, seen).Claim(first).value() == seen + 1);
  const absl::StatusOr<int64_t> late = LogTermRegistry(second_log, older, seen).Claim(second);
  CHECK(IsFenced(late.status()));
  CHECK_THAT(std::string(late.status().message()), Catch::Contains("the chief with pid 7"));
  CHECK(log.Read().value()->term() == seen + 1);

  // The first one was not told that its claim went in: it is still its turn.
  CHECK(LogTermRegistry(first_log, older, seen).Claim(first).value() == seen + 2);
}

}  // namespace
}  // namespace lockstep::chief
