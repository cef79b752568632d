#include "chief/standby/stand_by.h"

#include <catch2/catch.hpp>
#include <string>

#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
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
