#include "chief/checkpoint/carry_over_manifest.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "chief/checkpoint/format_1.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

Manifest ManifestOf(const Storage& storage, int64_t step) {
  return CheckpointReader::Open(storage, layout::CheckpointPath(step)).value().manifest();
}

// Steps 10 and 20, of format version 1.
struct EarlierJob {
  EarlierJob() {
    auto chief = SmallChief::Start(storage, /*keep_latest=*/5).value();
    for (const int64_t step : {10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
    for (const int64_t step : {10, 20}) {
      flat = MakeFormat1(storage, chief->log, layout::CheckpointPath(step)).value();
    }
  }

  MemoryStorage storage;
  std::string flat;  // the state digest of step 20
};

TEST_CASE("carry over: a checkpoint of format version 1 is read and verified as it is", "[checkpoint]") {
  const EarlierJob job;
  const std::string path = layout::CheckpointPath(20);
  const CheckpointReader reader = CheckpointReader::Open(job.storage, path).value();

  CHECK(reader.manifest().format_version() == 1);
  CHECK(reader.manifest().state_digest() == job.flat);
  CHECK(job.flat != SmallState(20).Digest());
  CHECK(reader.VerifyContent() == absl::OkStatus());
  CHECK(reader.ComputeDigests()->state == SmallState(20).Digest());
}

TEST_CASE("carry over: damage of a checkpoint of format version 1 is seen", "[checkpoint]") {
  EarlierJob job;
  const std::string path = absl::StrCat(layout::CheckpointPath(20), "/optimizer/optimizer-00001-of-00002.safetensors");
  std::string bytes = ReadWholeFile(job.storage, path, 1 << 20).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  REQUIRE(ReplaceFile(job.storage, "scratch", path, bytes, Access::kShared).ok());

  const auto chief = SmallChief::Start(job.storage, 5).value();

  CHECK(chief->newest->manifest().step() == 10);
  CHECK_THAT(absl::StrJoin(chief->messages, "\n"), Contains("set aside step-000000020"));
}

TEST_CASE("carry over: a job goes on from a manifest of today's format, and knows the old one's digest",
          "[checkpoint]") {
  EarlierJob job;
  {
    const auto chief = SmallChief::Start(job.storage, 5).value();

    REQUIRE(chief->newest.has_value());
    CHECK(chief->newest->manifest().format_version() == kManifestFormatVersion);
    CHECK(chief->newest->manifest().state_digest() == SmallState(20).Digest());
    CHECK(chief->newest->manifest().flat_state_digest() == job.flat);
    CHECK_THAT(absl::StrJoin(chief->messages, "\n"), Contains("step-000000020 was of format version 1"));
    CHECK(chief->log.head().live(chief->log.head().live_size() - 1).state_digest() == SmallState(20).Digest());
    CHECK(chief->Save(SmallState(30)).status() == absl::OkStatus());
  }
  CHECK(ManifestOf(job.storage, 10).format_version() == 1);  // nobody went on from it
  const auto next = SmallChief::Start(job.storage, 5).value();
  CHECK(next->messages.empty());
  CHECK(next->newest->manifest().step() == 30);
  CHECK(Names(job.storage, layout::kCheckpoints).size() == 3);
}

TEST_CASE("carry over: a chief that dies before its record leaves a checkpoint that counts", "[checkpoint]") {
  EarlierJob job;
  {
    // As far as the manifest: the log still has the old digest.
    JobLog log(job.storage);
    StorageTermRegistry older_terms(job.storage);
    LogTermRegistry registry(log, older_terms);
    const auto hold = TermHold::Take(job.storage, registry, TermOwner()).value();
    const CheckpointReader checkpoint = CheckpointReader::Open(job.storage, layout::CheckpointPath(20)).value();
    const StateDigests digests = DigestFormat1(checkpoint).value();
    REQUIRE(CarryOverManifest(*hold, checkpoint, digests)->state_digest() == SmallState(20).Digest());
  }

  const auto chief = SmallChief::Start(job.storage, 5).value();

  CHECK(chief->messages.empty());
  CHECK(chief->newest->manifest().step() == 20);
  CHECK(chief->newest->manifest().state_digest() == SmallState(20).Digest());
}

TEST_CASE("carry over: a repair goes back to a manifest of today's format", "[checkpoint]") {
  EarlierJob job;
  const auto chief = SmallChief::Start(job.storage, 5).value();
  std::vector<std::string> messages;

  CHECK(chief->store->FindAudited(15, messages).value() == "step-000000010");

  CHECK(ManifestOf(job.storage, 10).state_digest() == SmallState(10).Digest());
  CHECK(chief->store->accepted().at("step-000000010").manifest.state_digest() == SmallState(10).Digest());
}

}  // namespace
}  // namespace lockstep::chief
