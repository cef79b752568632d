// Pins and removals while no chief runs, in a directory and in a bucket.
#include "chief/server/job_upkeep.h"

#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "chief/server/job_store_bucket_harness.h"
#include "chief/server/job_store_harness.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/exit_code.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

std::unique_ptr<JobPlace> PlaceOf(Job& job) { return job.place ? job.place() : JobPlace::Open(job.dir()).value(); }

absl::StatusOr<std::string> Change(Job& job, CheckpointChange change, int64_t step, bool force = false) {
  std::vector<std::string> messages;
  const absl::StatusOr<std::string> text = ChangeWithoutChief(*PlaceOf(job), change, step, force, messages);
  CHECK(messages.empty());
  return text;
}

CommitRecord NewestOf(Job& job) {
  const std::unique_ptr<JobPlace> place = PlaceOf(job);
  return *JobLog::Of(*place)->Read().value();
}

// Steps 10 (the best), 20 and 30, by a chief that said how it ended.
void TrainToEnd(Job& job, int exit_code) {
  job.Train();
  const auto store = job.Open();
  REQUIRE(store.ok());
  REQUIRE((*store)->RecordEnd(exit_code).ok());
}

std::unique_ptr<Job> SomeJob() {
  if (GENERATE(false, true)) return std::make_unique<BucketJob>();
  return std::make_unique<Job>();
}

TEST_CASE("upkeep: a pin without a chief holds for the chiefs that come, and the end of the last one stays",
          "[server]") {
  const std::unique_ptr<Job> job = SomeJob();
  TrainToEnd(*job, kExitPreempted);

  REQUIRE(Change(*job, CheckpointChange::kPin, 20).status() == absl::OkStatus());

  CHECK(NewestOf(*job).ended());
  CHECK(NewestOf(*job).exit_code() == kExitPreempted);
  auto store = job->Open();
  REQUIRE(store.status() == absl::OkStatus());
  CheckRightState(**store);
  const EvaluationLedger ledger = (*store)->recovered().ledger;
  for (const uint64_t step : {40, 50, 60}) REQUIRE(job->Save(**store, step, ledger).status() == absl::OkStatus());
  CHECK((*store)->ChangeCheckpoint(CheckpointChange::kPin, 30).status().code() == absl::StatusCode::kNotFound);
  CHECK((*store)->ChangeCheckpoint(CheckpointChange::kUnpin, 20).ok());
  REQUIRE(job->Save(**store, 70, ledger).ok());
  CHECK((*store)->ChangeCheckpoint(CheckpointChange::kUnpin, 20).status().code() == absl::StatusCode::kNotFound);
}

TEST_CASE("upkeep: a checkpoint is removed with its bytes, and what the job needs is not", "[server]") {
  const std::unique_ptr<Job> job = SomeJob();
  TrainToEnd(*job, kExitDone);
  const std::unique_ptr<JobPlace> place = PlaceOf(*job);
  REQUIRE(place->storage().List(layout::kCheckpoints)->size() == 3);

  CHECK_THAT(std::string(Change(*job, CheckpointChange::kRemove, 30).status().message()), Contains("the newest"));
  CHECK_THAT(std::string(Change(*job, CheckpointChange::kRemove, 10).status().message()), Contains("the best"));
  CHECK(NewestOf(*job).ended());
  CHECK(NewestOf(*job).exit_code() == kExitDone);
  REQUIRE(Change(*job, CheckpointChange::kRemove, 20).status() == absl::OkStatus());

  CHECK(place->storage().List(layout::kCheckpoints)->size() == 2);
  CHECK(NewestOf(*job).live_size() == 2);
  const auto store = job->Open();
  REQUIRE(store.status() == absl::OkStatus());
  CheckRightState(**store);
}

TEST_CASE("upkeep: nothing is changed under a chief that may live", "[server]") {
  BucketJob in_bucket;
  in_bucket.Train();  // killed: the log has no end
  const CommitRecord before = in_bucket.Newest();

  const absl::Status refused = Change(in_bucket, CheckpointChange::kPin, 20).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Contains("--force") && Contains(before.owner().host()));
  CHECK(in_bucket.Newest().number() == before.number());

  const auto living = in_bucket.Open();
  REQUIRE(living.ok());
  REQUIRE(Change(in_bucket, CheckpointChange::kPin, 20, /*force=*/true).ok());
  CHECK(IsFenced(in_bucket.Save(**living, 40, (*living)->recovered().ledger).status()));

  // A directory's lock tells, and no --force goes past it.
  Job on_disk;
  on_disk.Train();
  REQUIRE(Change(on_disk, CheckpointChange::kPin, 20).ok());
  const auto holder = on_disk.Open();
  REQUIRE(holder.ok());
  for (const bool force : {false, true}) {
    const absl::Status locked = Change(on_disk, CheckpointChange::kPin, 30, force).status();
    CHECK(absl::IsFailedPrecondition(locked));
    CHECK_THAT(std::string(locked.message()), Contains("another chief runs this job"));
  }
}

TEST_CASE("upkeep: where nothing was trained nothing is made", "[server]") {
  BucketJob job;
  CHECK(absl::IsNotFound(Change(job, CheckpointChange::kPin, 20).status()));
  CHECK(job.Standing().empty());
}

// Changes a byte of every shard of every checkpoint.
void DamageAll(Job& job) {
  const std::unique_ptr<JobPlace> place = PlaceOf(job);
  const CommitRecord newest = NewestOf(job);
  for (const LiveCheckpoint& live : newest.live()) {
    const CheckpointReader reader = CheckpointReader::Open(place->storage(), live.prefix()).value();
    for (const ManifestFile& file : reader.manifest().files()) {
      if (file.header_size() == 0) continue;
      const std::string path = JoinPath(live.prefix(), file.path());
      std::string bytes = ReadWholeFile(place->storage(), path, 1 << 20).value();
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      REQUIRE(ReplaceFile(place->storage(), "scratch", path, bytes, Access::kShared).ok());
    }
  }
}

TEST_CASE("upkeep: a backup is adopted where no checkpoint verifies, and the damaged ones are not removed",
          "[server]") {
  const std::unique_ptr<Job> job = SomeJob();
  TrainToEnd(*job, kExitDone);
  const std::unique_ptr<JobPlace> place = PlaceOf(*job);
  // A backup of step 20, in a storage of its own.
  MemoryStorage backup;
  REQUIRE(backup.CreateDirectories("backup/optimizer").ok());
  const CommitRecord before = NewestOf(*job);
  for (const LiveCheckpoint& live : before.live()) {
    if (live.step() != 20) continue;
    const CheckpointReader reader = CheckpointReader::Open(place->storage(), live.prefix()).value();
    std::vector<std::string> files = {layout::kManifest};
    for (const ManifestFile& file : reader.manifest().files()) files.push_back(file.path());
    for (const std::string& file : files) {
      const std::string bytes = ReadWholeFile(place->storage(), JoinPath(live.prefix(), file), 1 << 20).value();
      REQUIRE(WriteNewFile(backup, JoinPath("backup", file), bytes, Access::kShared).ok());
    }
  }
  DamageAll(*job);
  REQUIRE(absl::IsDataLoss(job->Open().status()));
  std::vector<std::string> messages;

  const auto adopted = AdoptWithoutChief(*place, CheckpointReader::OpenFolder(backup, "backup").value(),
                                         /*force=*/true, messages);

  REQUIRE(adopted.status() == absl::OkStatus());
  CHECK_THAT(*adopted, Contains("step-000000020 is adopted") && Contains("from which the job goes on"));
  REQUIRE(!messages.empty());
  CHECK_THAT(messages[0], Contains("verifies"));
  auto store = job->Open();
  REQUIRE(store.status() == absl::OkStatus());
  CHECK((*store)->recovered().checkpoint.step == 20);
  if (!job->place) return;
  // In a bucket what no record names is removed.
  for (const LiveCheckpoint& live : before.live()) {
    CAPTURE(live.prefix());
    CHECK(place->storage().Exists(JoinPath(live.prefix(), layout::kManifest)).value());
  }
}

}  // namespace
}  // namespace lockstep::chief
