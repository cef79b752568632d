// The way back after replicas differed, on a real file system.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "chief/server/job_store.h"
#include "chief/server/job_store_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

TEST_CASE("job store: replicas that differ lead back to the audited checkpoint, also over a chief that dies meanwhile",
          "[server][rule22]") {
  Job job;
  job.Train();  // of steps 10 (the best), 20 and 30; 10 and 20 or 30 are left
  auto store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  const EvaluationLedger before = (*store)->recovered().ledger;
  const Lineage first = (*store)->recovered().checkpoint.lineage;
  EvaluationLedger ledger = before;
  for (const uint64_t step : {40, 50}) {
    ledger = Judge(job.rule(), ledger, step, {.loss = 0.1, .denominator = 1});
    REQUIRE(job.Save(**store, step, ledger, /*audited=*/false).status() == absl::OkStatus());
  }
  const RecordRepair order{first + "~1", 48, {"alpha"}, "replicas differ"};
  std::vector<std::string> messages;

  const auto repair = (*store)->Repair(order, messages);

  REQUIRE(repair.status() == absl::OkStatus());
  CHECK(repair->checkpoint.step == 30);
  CHECK(repair->checkpoint.lineage == first);
  CHECK(repair->ledger == before);
  CHECK(repair->set_aside_from == 40);
  CHECK(fs::exists(job.In("set_aside/step-000000050-unaudited-term-000002")));
  CHECK((*store)->Repair(order, messages).value() == *repair);  // ordered once more
  CHECK((*store)->FindBest().value().step == 10);
  store->reset();
  store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  CHECK((*store)->recovered().checkpoint == repair->checkpoint);
  CHECK((*store)->recovered().ledger == before);
  REQUIRE((*store)->recovered().repair.has_value());
  CHECK((*store)->recovered().repair == PastRepair{48, {"alpha"}});
  // What is saved from here on is of the new lineage.
  REQUIRE(job.Save(**store, 40, ledger).status() == absl::OkStatus());
  store->reset();
  store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  CHECK((*store)->recovered().checkpoint.step == 40);
  CHECK((*store)->recovered().checkpoint.lineage == order.lineage);
}

TEST_CASE("job store: a way back names the first checkpoint after the audited one, however many were saved since",
          "[server][rule22]") {
  Job job;
  job.Train();
  auto store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  const Lineage first = (*store)->recovered().checkpoint.lineage;
  EvaluationLedger ledger = (*store)->recovered().ledger;
  // Step 40 is the best until a wrong state is better.
  for (const auto& [step, loss] :
       std::vector<std::pair<uint64_t, double>>{{40, 0.2}, {50, 0.7}, {60, 0.1}, {70, 0.7}, {80, 0.7}}) {
    ledger = Judge(job.rule(), ledger, step, {.loss = loss, .denominator = 1});
    REQUIRE(job.Save(**store, step, ledger, /*audited=*/false).status() == absl::OkStatus());
  }
  CHECK_FALSE(fs::exists(job.In("checkpoints/step-000000050")));
  std::vector<std::string> messages;

  const auto repair = (*store)->Repair({first + "~1", 64, {}, "replicas differ"}, messages);

  // A copy of step 50 or later says that the best is step 40, which is none of the new lineage's.
  REQUIRE(repair.status() == absl::OkStatus());
  CHECK(repair->checkpoint.step == 30);
  CHECK(repair->set_aside_from == 40);
}

TEST_CASE("job store: where no audited checkpoint is left the next chief refuses as well, until one is put back",
          "[server][rule22]") {
  Job job;
  job.Train();
  auto store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  const EvaluationLedger ledger = (*store)->recovered().ledger;
  const Lineage first = (*store)->recovered().checkpoint.lineage;
  for (const uint64_t step : {40, 50}) {
    REQUIRE(job.Save(**store, step, ledger, /*audited=*/false).status() == absl::OkStatus());
  }
  fs::copy(job.In("checkpoints/step-000000030"), job.In("backup"), fs::copy_options::recursive);
  for (const auto& entry : fs::recursive_directory_iterator(job.In("checkpoints"))) {
    const std::string path = entry.path();
    const bool audited = !absl::StrContains(path, "000000040") && !absl::StrContains(path, "000000050");
    if (!audited || entry.path().extension() != ".safetensors") continue;
    std::string bytes = Read(path);
    bytes.back() ^= 1;
    Write(path, bytes);
  }
  std::vector<std::string> messages;

  const absl::Status nothing = (*store)->Repair({first + "~1", 48, {"alpha"}, "replicas differ"}, messages).status();

  CHECK(absl::IsDataLoss(nothing));
  CHECK((*store)->Repair({first + "~1", 48, {"alpha"}, "replicas differ"}, messages).status() == nothing);
  store->reset();
  for (int starts = 0; starts < 2; ++starts) {
    const absl::Status refused = job.Open().status();
    CHECK(absl::IsDataLoss(refused));
    CHECK(job.code == kExitStorage);
    CHECK_THAT(std::string(refused.message()), Contains("not audited"));
    CHECK(fs::exists(job.In("checkpoints/step-000000050")));
  }
  fs::copy(job.In("backup"), job.In("checkpoints/step-000000030"), fs::copy_options::recursive);
  store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  CHECK((*store)->recovered().checkpoint.step == 30);
  CHECK(fs::exists(job.In("set_aside/step-000000050-unaudited-term-000005")));
  store->reset();
  REQUIRE(job.Open().status() == absl::OkStatus());
}

}  // namespace
}  // namespace lockstep::chief
