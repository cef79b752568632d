#include "chief/standby/stand_by.h"

#include <catch2/catch.hpp>

#include "chief/term/job_log.h"
#include "chief/term/log_term_registry.h"
#include "chief/term/storage_term_registry.h"
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

}  // namespace
}  // namespace lockstep::chief
