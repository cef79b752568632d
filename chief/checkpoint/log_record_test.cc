// Damage to the commit log of a directory, and how a directory without one gets it.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_join.h"
#include "chief/checkpoint/control_file_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

std::string NewestRecord(Storage& storage) {
  return JoinPath(JoinPath(layout::kLog, Names(storage, layout::kLog).front()), "record.json");
}

TEST_CASE("control files: a damaged record of the log is named, and nothing that was committed is lost with it",
          "[checkpoint]") {
  for (const std::string damage : {"flipped", "cut", "gone"}) {
    MemoryStorage probe;
    PrepareWithLog(probe);
    const size_t size = Content(probe, NewestRecord(probe)).size();
    for (size_t at = 0; at < size; at += damage == "gone" ? size : 1) {
      CAPTURE(damage, at);
      MemoryStorage storage;
      auto first = SmallChief::Start(storage, 5).value();
      for (const int64_t step : {10, 20}) REQUIRE(first->Save(SmallState(step)).ok());  // the newest record has step 20
      first.reset();
      const std::string file = NewestRecord(storage);
      if (damage == "flipped" && at < Content(storage, file).size()) {
        REQUIRE(storage.FlipBit(file, at, static_cast<int>(at % 8)).ok());
      }
      if (damage == "cut") REQUIRE(storage.Truncate(file, std::min(at, Content(storage, file).size() - 1)).ok());
      if (damage == "gone") REQUIRE(storage.RemoveTree(file).ok());

      const auto restarted = SmallChief::Start(storage, 5);

      if (absl::IsFailedPrecondition(restarted.status())) {  // a bit made it one of a newer program
        CHECK_THAT(std::string(restarted.status().message()), Contains("newer") && Contains(file));
        continue;
      }
      REQUIRE(restarted.status() == absl::OkStatus());
      CheckNothingLost(storage, **restarted);
      if (at < size / 2) CHECK_THAT(absl::StrJoin((*restarted)->messages, "\n"), Contains("log/"));
    }
  }
}

TEST_CASE("control files: without its log a directory is not begun anew, and the error says what to do",
          "[checkpoint]") {
  MemoryStorage storage;
  PrepareWithLog(storage);
  REQUIRE(storage.RemoveTree(layout::kLog).ok());

  const auto restarted = SmallChief::Start(storage, 5);

  CHECK(absl::IsFailedPrecondition(restarted.status()));
  CHECK_THAT(std::string(restarted.status().message()), Contains("log is gone") && Contains("Put it back"));
  CHECK(Names(storage, layout::kCheckpoints).size() == 2);
}

TEST_CASE("control files: an older directory is carried over once, and an earlier program refuses it from then on",
          "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  auto chief = SmallChief::Start(storage, 5).value();
  CheckNothingLost(storage, *chief);
  CHECK(chief->hold->term() == 3);
  CHECK_THAT(Content(storage, layout::kMark), Contains("\"format_version\": 2"));
  REQUIRE(chief->Save(SmallState(30)).ok());
  chief.reset();

  // Nothing of the old files is asked any more.
  for (const std::string term : {"term-000001", "term-000002", "term-000003"}) {
    REQUIRE(storage.RemoveTree("chief/" + term).ok());
  }
  chief = SmallChief::Start(storage, 5).value();

  CHECK(chief->newest->manifest().step() == 30);
  CHECK(chief->hold->term() == 4);
  CHECK(chief->messages.empty());
}

TEST_CASE("control files: a chief of an earlier program that claims while the directory is carried over fences",
          "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  JobLog log(storage);
  StorageTermRegistry older(storage);
  LogTermRegistry registry(log, older);
  TermOwner owner;
  const auto hold = TermHold::Take(storage, registry, owner).value();
  CHECK(hold->term() == 3);
  CHECK(hold->CheckCurrent().ok());

  REQUIRE(older.Claim(owner).value() == 4);

  CHECK(IsFenced(hold->CheckCurrent()));
}

}  // namespace
}  // namespace lockstep::chief
