// Damage to the small files that decide about checkpoints in a directory of a program without a log: LOCKSTEP and the
// lists of each term. They are named and made up for, and condemn nothing that is good.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/control_file_harness.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

const char kAcceptedOfSecond[] = "chief/term-000002/accepted.json";

// `file` as a program without digests in such files wrote it.
std::string WithoutDigest(std::string json) {
  const size_t field = json.find(",\n  \"sha256\"");
  if (field != std::string::npos) json.erase(field, json.rfind("\n}") - field);
  return json;
}

// Flips a bit of `file` and starts a chief, which carries the directory over; then makes it an older one again.
void StartWithFlip(MemoryStorage& storage, const std::string& file, uint64_t at, int bit) {
  const std::string good = Content(storage, file);
  REQUIRE(storage.FlipBit(file, at, bit).ok());
  const std::string damaged = Content(storage, file);

  auto restarted = SmallChief::Start(storage, 5);

  // A newer format is not judged by this program, also when a flipped bit made it one.
  if (absl::StrContains(damaged, "\"format_version\": 5")) {
    CHECK_THAT(std::string(restarted.status().message()), Contains(file) && Contains("newer"));
    PutFile(storage, file, good);
    restarted = SmallChief::Start(storage, 5);
  }
  REQUIRE(restarted.status() == absl::OkStatus());
  CheckNothingLost(storage, **restarted);
  restarted->reset();
  MakeOlder(storage);
}

TEST_CASE("control files: a bit flipped anywhere stops no start, but for a newer format, and condemns no checkpoint",
          "[checkpoint]") {
  for (const std::string file : {"LOCKSTEP", kAcceptedOfSecond, "chief/term-000002/owner.json", "latest"}) {
    auto storage = std::make_unique<MemoryStorage>();
    Prepare(*storage);
    const std::string content = Content(*storage, file);
    for (size_t at = 0; at < content.size(); ++at) {
      CAPTURE(file, at, content.substr(at, 1));
      if (at % 20 == 19) {  // before terms are too many to list quickly
        storage = std::make_unique<MemoryStorage>();
        Prepare(*storage);
      }
      StartWithFlip(*storage, file, at, static_cast<int>(at % 5));
    }
  }
}

TEST_CASE("control files: without a digest, manifests that agree outweigh a mark that contradicts them all",
          "[checkpoint]") {
  for (const auto& [was, is] :
       std::vector<std::pair<std::string, std::string>>{{"line-1", "line-9"}, {"job-1", "job-9"}}) {
    CAPTURE(is);
    MemoryStorage storage;
    Prepare(storage);
    std::string mark = WithoutDigest(Content(storage, layout::kMark));
    mark.replace(mark.find(was), was.size(), is);
    PutFile(storage, layout::kMark, mark);

    const auto restarted = SmallChief::Start(storage, 5);

    REQUIRE(restarted.status() == absl::OkStatus());
    CheckNothingLost(storage, **restarted);
    CHECK_THAT(absl::StrJoin((*restarted)->messages, "\n"), Contains("LOCKSTEP") && Contains("2 manifests"));
    const CommitRecord record = (*restarted)->log.head();
    CHECK_THAT(record.job_id() + record.lineage(), Contains(was));
    CHECK(Content(storage, "set_aside/LOCKSTEP-bad-term-000003") == mark);
  }
}

TEST_CASE("control files: a good mark without a digest is read", "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  PutFile(storage, layout::kMark, WithoutDigest(Content(storage, layout::kMark)));
  PutFile(storage, kAcceptedOfSecond, WithoutDigest(Content(storage, kAcceptedOfSecond)));

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CheckNothingLost(storage, **restarted);
  CHECK((*restarted)->messages.empty());
}

TEST_CASE("control files: a damaged mark that manifests of two lineages cannot rebuild is named, nothing is moved",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 5).value();
  REQUIRE(chief->Save(SmallState(10)).ok());
  REQUIRE(chief->Save(SmallState(20), 2, "line-2").ok());
  chief.reset();
  MakeOlder(storage);
  REQUIRE(storage.FlipBit(layout::kMark, 40, 0).ok());

  const auto restarted = SmallChief::Start(storage, 5);

  CHECK(absl::IsDataLoss(restarted.status()));
  CHECK_THAT(std::string(restarted.status().message()),
             Contains("LOCKSTEP") && Contains("line-1") && Contains("line-2") && Contains("--dir"));
  CHECK(Names(storage, layout::kCheckpoints).size() == 2);
  CHECK(Names(storage, layout::kSetAside).empty());
}

TEST_CASE("control files: a sound mark that no checkpoint belongs to stops the start, and nothing is moved",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 5).value();
  REQUIRE(chief->Save(SmallState(10)).ok());
  DirectoryMark mark = SmallMark(true);
  mark.set_lineage("line-9");
  REQUIRE(chief->SetHistory(mark).ok());
  chief.reset();
  const bool older = GENERATE(false, true);
  if (older) MakeOlder(storage);

  const auto restarted = SmallChief::Start(storage, 5);

  CHECK(absl::IsDataLoss(restarted.status()));
  CHECK_THAT(std::string(restarted.status().message()),
             Contains("step-000000010") && Contains("line-9") && Contains("nothing was moved"));
  CHECK(Names(storage, layout::kCheckpoints).size() == 1);
}

TEST_CASE("control files: a list without a digest condemns nothing by one changed digit", "[checkpoint]") {
  MemoryStorage probe;
  Prepare(probe);
  const std::string list = WithoutDigest(Content(probe, kAcceptedOfSecond));
  for (size_t at = 0; at < list.size(); ++at) {
    if (!absl::ascii_isalnum(list[at])) continue;
    CAPTURE(at, list.substr(at, 12));
    MemoryStorage storage;
    Prepare(storage);
    std::string changed = list;
    changed[at] = changed[at] == '9' || changed[at] == 'z' ? '1' : static_cast<char>(changed[at] + 1);
    PutFile(storage, kAcceptedOfSecond, changed);

    const auto restarted = SmallChief::Start(storage, 5);

    REQUIRE(restarted.status() == absl::OkStatus());
    CheckNothingLost(storage, **restarted);
  }
}

TEST_CASE("control files: a damaged list is named", "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  REQUIRE(storage.FlipBit(kAcceptedOfSecond, 30, 0).ok());

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CHECK_THAT(absl::StrJoin((*restarted)->messages, "\n"), Contains(kAcceptedOfSecond));
}

TEST_CASE("control files: one that is longer than it can be is damaged, and is not waited for", "[checkpoint]") {
  for (const std::string file : {"LOCKSTEP", kAcceptedOfSecond}) {
    CAPTURE(file);
    MemoryStorage storage;
    Prepare(storage);
    const size_t limit = file == "LOCKSTEP" ? size_t{1} << 20 : size_t{64} << 20;
    PutFile(storage, file, std::string(limit + 1, 'x'));

    const auto restarted = SmallChief::Start(storage, 5);

    REQUIRE(restarted.status() == absl::OkStatus());
    CheckNothingLost(storage, **restarted);
    CHECK_THAT(absl::StrJoin((*restarted)->messages, "\n"), Contains(file));
  }
}

TEST_CASE("control files: a hint of the best checkpoint that is too long names none", "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  PutFile(storage, "best", std::string(1000, 'x'));
  const auto chief = SmallChief::Start(storage, 5).value();
  EvaluationRule rule;
  EvaluationLedger ledger;
  std::vector<std::string> messages;

  const absl::Status settled = chief->store->SettleBest(rule, ledger, messages);

  CHECK(settled == absl::OkStatus());
  CHECK_THAT(absl::StrJoin(messages, "\n"), Contains("best names no checkpoint"));
}

TEST_CASE("recovery: what was set aside although it is of this history is put back", "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  REQUIRE(storage.Rename("checkpoints/step-000000010", "set_aside/step-000000010-abandoned-term-000002").ok());
  REQUIRE(storage.Rename("checkpoints/step-000000020", "set_aside/step-000000020-late-term-000002-2").ok());

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CheckNothingLost(storage, **restarted);
  CHECK_THAT(absl::StrJoin((*restarted)->messages, "\n"),
             Contains("put back step-000000020") && Contains("put back step-000000010"));
}

TEST_CASE("recovery: the mark's old contradiction is mended also when everything was set aside for it",
          "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  std::string mark = WithoutDigest(Content(storage, layout::kMark));
  mark.replace(mark.find("line-1"), 6, "line-9");
  PutFile(storage, layout::kMark, mark);
  for (const std::string step : {"step-000000010", "step-000000020"}) {
    REQUIRE(storage.Rename("checkpoints/" + step, "set_aside/" + step + "-abandoned-term-000003").ok());
  }

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CheckNothingLost(storage, **restarted);
}

TEST_CASE("recovery: only what is newer than the newest and of this history is put back, and never over another",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 5).value();
  for (const int64_t step : {10, 20, 30}) REQUIRE(chief->Save(SmallState(step)).ok());
  REQUIRE(chief->Save(SmallState(40), 2, "line-2").ok());
  chief.reset();
  MakeOlder(storage);
  const std::vector<std::string> aside = {"step-000000010-late-term-000001", "step-000000030-bad-term-000001",
                                          "step-000000040-abandoned-term-000001"};
  for (const std::string& name : aside) {
    REQUIRE(storage.Rename("checkpoints/" + name.substr(0, 14), "set_aside/" + name).ok());
  }

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CHECK((*restarted)->newest->manifest().step() == 20);
  CHECK(StepsSetAside(storage) == aside);
}

TEST_CASE("recovery: a checkpoint whose evaluation was written behind by a later term is not late", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 5).value();
  CommitInfo info = SmallCommit();
  info.evaluation_pending = true;
  auto shards = StoreAll(*chief->hold, SmallState(10), 2, 400, "line-1");
  REQUIRE(chief->store->Publish(*std::move(shards), info).ok());
  chief.reset();
  chief = SmallChief::Start(storage, 5).value();
  REQUIRE(chief->store->Amend(SmallState(10).Id(), {.rule = 1, .step = 10, .best_step = 10}, 0).ok());
  chief.reset();

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CHECK((*restarted)->newest->manifest().step() == 10);
  CHECK((*restarted)->messages.empty());
}

TEST_CASE("recovery: a good copy of an older checkpoint that is put back by hand serves", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 5).value();
  for (const int64_t step : {10, 20, 30}) REQUIRE(chief->Save(SmallState(step)).ok());
  chief.reset();
  REQUIRE(storage.Rename("checkpoints/step-000000020", "backup").ok());
  REQUIRE(SmallChief::Start(storage, 5).ok());
  REQUIRE(storage.RemoveTree("checkpoints/step-000000010").ok());
  REQUIRE(storage.RemoveTree("checkpoints/step-000000030").ok());
  REQUIRE(storage.Rename("backup", "checkpoints/step-000000020").ok());

  const auto restarted = SmallChief::Start(storage, 5);

  REQUIRE(restarted.status() == absl::OkStatus());
  CHECK((*restarted)->newest->manifest().step() == 20);
}

TEST_CASE("recovery: a directory that lost its mark while everything is set aside does not begin anew",
          "[checkpoint]") {
  MemoryStorage storage;
  Prepare(storage);
  for (const std::string step : {"step-000000010", "step-000000020"}) {
    REQUIRE(storage.Rename("checkpoints/" + step, "set_aside/" + step + "-bad-term-000002").ok());
  }
  REQUIRE(storage.RemoveTree(layout::kMark).ok());

  const auto restarted = SmallChief::Start(storage, 5);

  CHECK(restarted.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(restarted.status().message()), Contains("LOCKSTEP is missing") && Contains("set_aside"));
}

}  // namespace
}  // namespace lockstep::chief
