// Which checkpoints stay, what the hints name, and what is written behind a checkpoint that is published.
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/checkpoint_format/manifest.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

// Step 10 is the best.
CommitInfo CommitWithBest() {
  CommitInfo info = SmallCommit();
  info.evaluations = {.rule = 1, .step = 10, .value = 0.5, .best_step = 10, .best_value = 0.5, .reference = 0.5};
  info.keep_step = 10;
  return info;
}

TEST_CASE("checkpoint: retention keeps the newest verified ones and never removes the last", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 2).value();
  for (const int64_t step : {0, 10, 20, 30}) REQUIRE(chief->Save(SmallState(step)).ok());
  CHECK(Names(storage, "checkpoints") == std::vector<std::string>{"step-000000020", "step-000000030"});

  REQUIRE(chief->Save(SmallState(40)).ok());
  CHECK(Names(storage, "checkpoints") == std::vector<std::string>{"step-000000030", "step-000000040"});

  // After a restart only the newest was read through: the older one does not count, and stays until enough do.
  chief.reset();
  chief = SmallChief::Start(storage, 2).value();
  CHECK(chief->store->accepted().at("step-000000040").verified);
  CHECK_FALSE(chief->store->accepted().at("step-000000030").verified);
  chief.reset();
  chief = SmallChief::Start(storage, 3).value();
  REQUIRE(chief->Save(SmallState(50)).ok());
  REQUIRE(chief->Save(SmallState(60)).ok());
  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000040", "step-000000050", "step-000000060"});
  chief.reset();
  chief = SmallChief::Start(storage, 3).value();
  REQUIRE(chief->Save(SmallState(70)).ok());
  CHECK(Names(storage, "checkpoints").size() == 4);
  REQUIRE(chief->Save(SmallState(80)).ok());

  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000060", "step-000000070", "step-000000080"});
  CHECK(Names(storage, "staging/term-000004").empty());
}

TEST_CASE("checkpoint: a job that is started anew again and again keeps no more, once its chiefs verify older ones",
          "[checkpoint]") {
  MemoryStorage storage;
  for (int64_t life = 0; life < 10; ++life) {
    auto chief = SmallChief::Start(storage, 3).value();
    for (std::string name = chief->store->NextUnverified(); !name.empty(); name = chief->store->NextUnverified()) {
      chief->store->MarkVerified(name, chief->store->accepted().at(name).manifest.state_digest());
    }
    REQUIRE(chief->Save(SmallState(life * 10)).ok());
  }

  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000070", "step-000000080", "step-000000090"});
}

TEST_CASE("checkpoint: a save that failed behind its rename does not push out the one that is published after it",
          "[checkpoint]") {
  for (int64_t at = 0, done = 0; done == 0; ++at) {
    INFO("the save of step 20 fails at operation " << at);
    MemoryStorage storage;
    const auto chief = SmallChief::Start(storage, /*keep_latest=*/1).value();
    REQUIRE(chief->Save(SmallState(10)).ok());
    storage.SetFaults({.at = {{at, StorageFaults::Kind::kIoError}}});
    done = chief->Save(SmallState(20)).ok() && storage.operations() <= at;
    storage.SetFaults({});
    if (done != 0) break;

    // Every worker is lost, and the job goes on from step 10.
    const auto published = chief->Save(SmallState(15));
    REQUIRE(published.status() == absl::OkStatus());
    const auto reader = CheckpointReader::Open(storage, published->path);
    REQUIRE(reader.status() == absl::OkStatus());
    CHECK(reader->VerifyContent() == absl::OkStatus());
  }
}

TEST_CASE("checkpoint: where a save fails at its record, the one before stays what the job goes on from",
          "[checkpoint]") {
  int failed = 0;
  for (int64_t at = 0, done = 0; done == 0; ++at) {
    INFO("the save of step 20 fails at operation " << at);
    MemoryStorage storage;
    const auto chief = SmallChief::Start(storage, /*keep_latest=*/1).value();
    REQUIRE(chief->Save(SmallState(10)).ok());
    storage.SetFaults({.at = {{at, StorageFaults::Kind::kIoError}}});
    const bool saved = chief->Save(SmallState(20)).ok();
    done = saved && storage.operations() <= at;
    storage.SetFaults({});
    if (saved) continue;
    ++failed;

    // Whatever is recorded next, for another reason.
    std::vector<std::string> messages;
    REQUIRE(chief->store->Record("something else").ok());
    REQUIRE(chief->store->MakeRoom(messages).ok());
    CHECK(absl::IsFailedPrecondition(chief->store->Change(CheckpointChange::kRemove, 10).status()));

    REQUIRE(chief->store->accepted().contains("step-000000010"));
    const auto reader = CheckpointReader::Open(storage, chief->store->PathOf("step-000000010"));
    REQUIRE(reader.status() == absl::OkStatus());
    CHECK(reader->VerifyContent() == absl::OkStatus());
  }
  CHECK(failed > 10);
}

TEST_CASE("checkpoint: a leftover that retention could not remove does not replace the same step, computed again",
          "[checkpoint]") {
  int left = 0;
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    auto chief = SmallChief::Start(storage, 1).value();
    for (const int64_t step : {10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
    StorageFaults faults;
    faults.at[at] = StorageFaults::Kind::kIoError;
    storage.SetFaults(faults);
    const auto saved = chief->Save(SmallState(30));  // retires step 20
    finished = storage.operations() <= at;
    storage.SetFaults({});
    if (!saved.ok() || !storage.Exists("checkpoints/step-000000020").value()) continue;
    ++left;
    // Replicas differed: the job is back before step 20, and computes it again.
    std::vector<std::string> messages;
    chief->store->ForgetAbove(10);
    REQUIRE(chief->SetHistory(SmallMark(true)).ok());
    REQUIRE(chief->store->SetAsideAbove(10, messages).ok());

    REQUIRE(chief->Save(SmallState(20), 2, "line-2").ok());

    CHECK(CheckpointReader::Open(storage, "checkpoints/step-000000020")->manifest().lineage() == "line-2");
    const CommitRecord record = chief->log.head();
    CHECK(record.retired().empty());
    REQUIRE(record.live_size() == 1);
    CHECK(record.live(0).step() == 20);
  }
  CHECK(left >= 1);
}

TEST_CASE("checkpoint: a save that does not fit gets the room of what retention lets go", "[checkpoint]") {
  MemoryStorage storage;
  for (int64_t life = 0; life < 6; ++life) {
    auto chief = SmallChief::Start(storage, 3).value();
    REQUIRE(chief->Save(SmallState(life * 10)).ok());
  }
  auto chief = SmallChief::Start(storage, 3).value();
  REQUIRE(Names(storage, "checkpoints").size() == 6);
  REQUIRE(storage.FlipBit("checkpoints/step-000000040/model-00001-of-00002.safetensors", 300, 1).ok());
  std::vector<std::string> messages;

  REQUIRE(chief->store->MakeRoom(messages).ok());

  // The damaged one counts for nothing, and the three newest that are whole stay.
  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000020", "step-000000030", "step-000000050"});
  CHECK(Names(storage, "set_aside").size() == 1);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Catch::Contains("step-000000040"));
}

TEST_CASE("checkpoint: retention leaves the best checkpoint, and `best` names it", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 2).value();
  CommitInfo info = CommitWithBest();
  for (const int64_t step : {0, 10, 20, 30, 40}) {
    auto shards = StoreAll(*chief->hold, SmallState(step), 2, 400, "line-1");
    REQUIRE(shards.ok());
    REQUIRE(chief->store->Publish(*std::move(shards), info).ok());
  }

  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000010", "step-000000030", "step-000000040"});
  CHECK(ReadWholeFile(storage, "best", 100).value() == "step-000000010\n");
  const auto reader = CheckpointReader::Open(storage, "checkpoints/step-000000040");
  CHECK(FromProto(reader->manifest().evaluations()) == info.evaluations);

  // By another rule nothing is the best yet: the old one stays.
  info.keep_step = kKeepNamed;
  auto unjudged = StoreAll(*chief->hold, SmallState(45), 2, 400, "line-1");
  REQUIRE(chief->store->Publish(*std::move(unjudged), info).ok());
  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000010", "step-000000040", "step-000000045"});

  // Another one is better: the old one is like every other.
  info.keep_step = 40;
  info.evaluations.value = std::numeric_limits<double>::quiet_NaN();
  auto shards = StoreAll(*chief->hold, SmallState(50), 2, 400, "line-1");
  REQUIRE(chief->store->Publish(*std::move(shards), info).ok());
  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000040", "step-000000045", "step-000000050"});
  CHECK(ReadWholeFile(storage, "best", 100).value() == "step-000000040\n");
  // A loss that is not a number reads back as it was.
  CHECK(std::isnan(CheckpointReader::Open(storage, "checkpoints/step-000000050")->manifest().evaluations().value()));
}

TEST_CASE("checkpoint: one of each distance stays, whoever is the chief", "[checkpoint]") {
  MemoryStorage storage;
  const RetentionRule rule{.keep_latest = 1, .keep_every_steps = 20};
  auto chief = SmallChief::StartWith(storage, rule).value();
  for (const int64_t step : {0, 10, 20, 30, 40, 50}) REQUIRE(chief->Save(SmallState(step)).ok());
  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000020", "step-000000040", "step-000000050"});

  chief.reset();
  chief = SmallChief::StartWith(storage, rule).value();
  REQUIRE(chief->Save(SmallState(60)).ok());
  // Until 40 was read again, 50 may be the one that has to stand for it.
  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000020", "step-000000040", "step-000000050", "step-000000060"});
  std::vector<std::string> messages;
  for (std::string name = chief->store->NextUnverified(); !name.empty(); name = chief->store->NextUnverified()) {
    REQUIRE(chief->store->StillGood(name, /*content=*/true, messages).value());
  }
  REQUIRE(chief->Save(SmallState(70)).ok());

  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000020", "step-000000040", "step-000000060", "step-000000070"});
}

TEST_CASE("checkpoint: what is pinned stays until it is unpinned, whoever is the chief", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 1).value();
  REQUIRE(chief->Save(SmallState(10)).ok());
  CHECK_THAT(chief->store->Change(CheckpointChange::kPin, 10).value(), Catch::Contains("step-000000010 is pinned"));
  CHECK_THAT(chief->store->Change(CheckpointChange::kPin, 10).value(), Catch::Contains("already"));
  CHECK(absl::IsNotFound(chief->store->Change(CheckpointChange::kPin, 20).status()));
  for (const int64_t step : {20, 30}) REQUIRE(chief->Save(SmallState(step)).ok());
  CHECK(chief->log.head().live(0).pinned());
  CHECK_FALSE(chief->log.head().live(1).pinned());

  chief.reset();
  chief = SmallChief::Start(storage, 1).value();
  for (const int64_t step : {40, 50}) REQUIRE(chief->Save(SmallState(step)).ok());
  CHECK(Names(storage, "checkpoints") == std::vector<std::string>{"step-000000010", "step-000000050"});
  CHECK(chief->store->Change(CheckpointChange::kRemove, 10).status().code() == absl::StatusCode::kFailedPrecondition);

  REQUIRE(chief->store->Change(CheckpointChange::kUnpin, 10).ok());
  CHECK(Names(storage, "checkpoints").size() == 2);
  REQUIRE(chief->Save(SmallState(60)).ok());
  CHECK(Names(storage, "checkpoints") == std::vector<std::string>{"step-000000060"});
}

TEST_CASE("checkpoint: one is removed by hand unless the job needs it", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 10).value();
  CommitInfo info = CommitWithBest();
  for (const int64_t step : {0, 10, 20, 30, 40}) {
    info.audited = step == 30;
    auto shards = StoreAll(*chief->hold, SmallState(step), 2, 400, "line-1");
    REQUIRE(shards.ok());
    REQUIRE(chief->store->Publish(*std::move(shards), info).ok());
  }
  const auto refusal = [&](int64_t step) {
    const absl::Status status = chief->store->Change(CheckpointChange::kRemove, step).status();
    CHECK(absl::IsFailedPrecondition(status));
    return std::string(status.message());
  };
  CHECK_THAT(refusal(40), Catch::Contains("the newest"));
  CHECK_THAT(refusal(10), Catch::Contains("the best"));
  CHECK_THAT(refusal(30), Catch::Contains("audit"));

  CHECK(chief->store->Change(CheckpointChange::kRemove, 20).value() == "step-000000020 is removed");

  CHECK(Names(storage, "checkpoints") ==
        std::vector<std::string>{"step-000000000", "step-000000010", "step-000000030", "step-000000040"});
  CHECK(chief->log.head().live_size() == 4);
  CHECK(absl::IsNotFound(chief->store->Change(CheckpointChange::kRemove, 20).status()));
  chief.reset();
  chief = SmallChief::Start(storage, 10).value();
  CHECK(chief->messages.empty());
  CHECK(chief->store->accepted().size() == 4);
}

TEST_CASE("checkpoint: an evaluation that ended after its state was published is written into the manifest",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 2).value();
  CommitInfo info = SmallCommit();
  info.evaluation_pending = true;
  auto shards = StoreAll(*chief->hold, SmallState(10), 2, 400, "line-1");
  const SnapshotId id = shards->id;
  REQUIRE(chief->store->Publish(*std::move(shards), info).ok());
  const EvaluationLedger ledger{.rule = 1, .step = 10, .best_step = 10};

  const auto amended = chief->store->Amend(id, ledger, 10);

  REQUIRE(amended.ok());
  const auto reader = CheckpointReader::Open(storage, amended->path);
  REQUIRE(reader.ok());
  CHECK_FALSE(reader->manifest().evaluation_pending());
  CHECK(FromProto(reader->manifest().evaluations()) == ledger);
  CHECK(ReadWholeFile(storage, "best", 100).value() == "step-000000010\n");
  CHECK(absl::IsNotFound(chief->store->Amend({id.lineage, 10, "other"}, ledger, 10).status()));
}

}  // namespace
}  // namespace lockstep::chief
