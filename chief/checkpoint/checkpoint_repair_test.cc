// The way back on the disk (rule 22): what it goes back to, what is set aside, and a chief that starts in the middle.
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "chief/checkpoint/found_mark.h"
#include "chief/checkpoint/older_directory.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/sha256.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using NameList = std::vector<std::string>;

absl::Status Publish(SmallChief& chief, int64_t step, bool audited, const std::string& lineage = "line-1") {
  CommitInfo info = SmallCommit();
  info.audited = audited;
  auto shards = StoreAll(*chief.hold, SmallState(step), 2, 400, lineage);
  LS_RETURN_IF_ERROR(shards.status());
  return chief.store->Publish(*std::move(shards), info).status();
}

// As a repair of line-1 that went back to `step` leaves it.
DirectoryMark Repaired(int64_t step) {
  DirectoryMark mark = SmallMark(true);
  mark.set_lineage("line-1~1");
  Ancestor* ancestor = mark.add_ancestors();
  ancestor->set_lineage("line-1");
  ancestor->set_last_step(step);
  ancestor->set_found_at(48);
  ancestor->add_hosts("alpha");
  return mark;
}

TEST_CASE("repair: `audited` is written into the manifest and read back; step 0 and an earlier program's count",
          "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(Publish(*chief, step, step == 10).ok());
  chief.reset();
  chief = SmallChief::Start(storage, 9).value();

  std::map<std::string, bool> audited;
  for (const auto& [name, checkpoint] : chief->store->accepted()) audited[name] = IsAudited(checkpoint.manifest);
  CHECK(audited ==
        std::map<std::string, bool>{{"step-000000000", true}, {"step-000000010", true}, {"step-000000020", false}});

  // As a program wrote it that did not know the field.
  Manifest manifest = chief->store->accepted().at("step-000000020").manifest;
  std::string json = EncodeManifest(manifest).value();
  const size_t field = json.find("  \"audited\"");
  json.erase(field, json.find('\n', field) + 1 - field);
  const size_t digest = json.rfind(manifest.manifest_sha256());
  json.replace(digest, 64, std::string(64, '0'));
  json.replace(digest, 64, Sha256Hex(json));
  const auto parsed = ParseManifest(json, "manifest.json");
  REQUIRE(parsed.status() == absl::OkStatus());
  CHECK(IsAudited(*parsed));
}

TEST_CASE("repair: it goes back to the newest audited checkpoint that verifies, and sets the newer ones aside",
          "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20, 30, 40}) REQUIRE(Publish(*chief, step, step <= 20).ok());
  const bool damaged = GENERATE(false, true);
  if (damaged) REQUIRE(storage.FlipBit("checkpoints/step-000000020/model-00001-of-00002.safetensors", 300, 1).ok());
  std::vector<std::string> messages;

  const auto found = chief->store->FindAudited(100, messages);
  REQUIRE(found.status() == absl::OkStatus());
  CHECK(*found == (damaged ? "step-000000010" : "step-000000020"));
  CHECK(chief->store->ForgetAbove(damaged ? 10 : 20) == 30);
  REQUIRE(chief->SetHistory(Repaired(damaged ? 10 : 20)).ok());
  REQUIRE(chief->store->SetAsideAbove(damaged ? 10 : 20, messages).ok());
  REQUIRE(chief->store->SetAsideAbove(damaged ? 10 : 20, messages).ok());  // once more: nothing is left to do

  CHECK(chief->store->accepted().rbegin()->first == *found);
  const std::string newest = Names(storage, layout::kCheckpoints).back();
  CHECK(newest == *found);
  CHECK(ReadWholeFile(storage, layout::kLatest, 100).value() == *found + "\n");
  const std::string aside = absl::StrJoin(Names(storage, layout::kSetAside), " ");
  CHECK_THAT(aside, Contains("step-000000030-unaudited-term-000001") && Contains("step-000000040-unaudited"));
  CHECK(absl::StrContains(aside, "step-000000020-bad") == damaged);
  CHECK(absl::StrContains(aside, "step-000000020") == damaged);
  // The same steps are published again, and nothing that was set aside ever comes back.
  chief.reset();
  chief = SmallChief::Start(storage, 9).value();
  CHECK(chief->newest->manifest().step() == (damaged ? 10 : 20));
  REQUIRE(
      chief->store->Publish(StoreAll(*chief->hold, SmallState(30), 2, 400, "line-1~1").value(), SmallCommit()).ok());
  CHECK(Names(storage, layout::kCheckpoints).back() == "step-000000030");
}

TEST_CASE("repair: a chief that starts between the decision and its doing finishes it", "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20, 30, 40}) REQUIRE(Publish(*chief, step, step <= 20).ok());
  REQUIRE(chief->SetHistory(Repaired(20)).ok());
  const bool begun = GENERATE(false, true);
  if (begun) REQUIRE(chief->store->SetAside("step-000000040", kUnaudited).ok());
  chief.reset();

  for (int starts = 0; starts < 2; ++starts) {
    chief = SmallChief::Start(storage, 9).value();
    CHECK(chief->newest->manifest().step() == 20);
    CHECK(Names(storage, layout::kCheckpoints) == NameList{"step-000000000", "step-000000010", "step-000000020"});
    CHECK(Names(storage, layout::kSetAside).size() == 2);
    if (starts == 0) CHECK_THAT(absl::StrJoin(chief->messages, "\n"), Contains("replicas differed"));
    chief.reset();
  }
}

TEST_CASE("repair: before the decision is written everything is as it was", "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(Publish(*chief, step, step == 0).ok());
  std::vector<std::string> messages;
  REQUIRE(chief->store->FindAudited(100, messages).value() == "step-000000000");
  chief.reset();

  chief = SmallChief::Start(storage, 9).value();

  CHECK(chief->newest->manifest().step() == 20);
  CHECK(Names(storage, layout::kCheckpoints).size() == 3);
}

TEST_CASE("repair: retention leaves the newest audited checkpoint", "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 2).value();
  for (const int64_t step : {0, 10, 20, 30, 40}) REQUIRE(Publish(*chief, step, step == 10).ok());
  CHECK(Names(storage, layout::kCheckpoints) == NameList{"step-000000010", "step-000000030", "step-000000040"});
  // One that this chief has not read may be damaged: the one before it stays as well.
  chief.reset();
  chief = SmallChief::Start(storage, 2).value();
  REQUIRE(Publish(*chief, 50, false).ok());
  CHECK(Names(storage, layout::kCheckpoints).front() == "step-000000010");

  for (const int64_t step : {60, 70}) REQUIRE(Publish(*chief, step, true).ok());

  CHECK(Names(storage, layout::kCheckpoints) == NameList{"step-000000060", "step-000000070"});
}

TEST_CASE("repair: what is audited after the step of the difference followed from it", "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {10, 20, 30}) REQUIRE(Publish(*chief, step, true).ok());
  std::vector<std::string> messages;

  CHECK(chief->store->FindAudited(25, messages).value() == "step-000000020");
  CHECK(chief->store->FindAudited(20, messages).value() == "step-000000020");
  const auto found = chief->store->FindAudited(9, messages);

  CHECK(absl::IsDataLoss(found.status()));
  CHECK_THAT(std::string(found.status().message()), Contains("up to step 9"));
  // A job that stops for it does not begin with the later ones when it is started again.
  DirectoryMark mark = Repaired(kNothingShared);
  mark.mutable_ancestors(0)->set_found_at(9);
  REQUIRE(chief->SetHistory(mark).ok());
  chief.reset();
  CHECK_FALSE(SmallChief::Start(storage, 9).ok());
  mark.mutable_ancestors(0)->set_found_at(20);
  Manifest later;
  later.set_job_id(mark.job_id());
  later.set_lineage("line-1");
  later.set_audited(true);
  CHECK(PartedAt(later, mark) == 20);
}

TEST_CASE("repair: retention leaves the newest audited checkpoint up to the audit floor", "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 2).value();
  const auto publish = [&](int64_t step, int64_t floor) {
    CommitInfo info = SmallCommit();
    info.audited = true;
    info.audit_floor = floor;
    REQUIRE(chief->store->Publish(StoreAll(*chief->hold, SmallState(step), 2).value(), info).ok());
  };
  for (const int64_t step : {10, 20, 30, 40, 50}) publish(step, 25);
  CHECK(Names(storage, layout::kCheckpoints) == NameList{"step-000000020", "step-000000040", "step-000000050"});
  CHECK(chief->store->OldestAudited() == 20);

  publish(60, CommitInfo().audit_floor);

  CHECK(Names(storage, layout::kCheckpoints) == NameList{"step-000000050", "step-000000060"});
}

TEST_CASE("repair: with nothing audited left there is nothing to go back to", "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {10, 20}) REQUIRE(Publish(*chief, step, false).ok());
  std::vector<std::string> messages;

  const auto found = chief->store->FindAudited(100, messages);

  CHECK(absl::IsDataLoss(found.status()));
  CHECK(Names(storage, layout::kCheckpoints).size() == 2);
}

TEST_CASE("repair: a damaged mark is rebuilt from the manifests of the lineages that repairs began",
          "[checkpoint][rule22]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 9).value();
  for (const int64_t step : {0, 10, 20, 30}) REQUIRE(Publish(*chief, step, step <= 20).ok());
  // The checkpoint of step 30 was about to be set aside.
  REQUIRE(Publish(*chief, 40, true, "line-1~1").ok());
  REQUIRE(chief->SetHistory(Repaired(20)).ok());
  chief.reset();
  MakeOlder(storage);
  REQUIRE(storage.FlipBit(layout::kMark, 40, 1).ok());

  chief = SmallChief::Start(storage, 9).value();

  CHECK(chief->newest->manifest().step() == 40);
  CHECK(Names(storage, layout::kCheckpoints) ==
        NameList{"step-000000000", "step-000000010", "step-000000020", "step-000000040"});
  const CommitRecord record = chief->log.head();
  CHECK(record.lineage() == "line-1~1");
  REQUIRE(record.ancestors_size() == 1);
  CHECK(record.ancestors(0).lineage() == "line-1");
  CHECK(record.ancestors(0).last_step() == 20);
}

}  // namespace
}  // namespace lockstep::chief
