#include "chief/checkpoint/adopt.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// A copy of the job's directory as it was when it had steps 10 and 20.
struct Backup {
  Backup() {
    const auto chief = SmallChief::Start(storage, /*keep_latest=*/5).value();
    for (const int64_t step : {10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
  }
  CheckpointReader At(int64_t step) const {
    return CheckpointReader::OpenFolder(storage, layout::CheckpointPath(step)).value();
  }

  MemoryStorage storage;
};

// The job since then: it has these steps.
struct Job {
  explicit Job(const std::vector<int64_t>& steps) : chief(SmallChief::Start(storage, /*keep_latest=*/5).value()) {
    for (const int64_t step : steps) REQUIRE(chief->Save(SmallState(step)).ok());
  }
  absl::StatusOr<std::string> Adopt(const CheckpointReader& checkpoint, const DirectoryMark& mark = SmallMark(true)) {
    return chief::Adopt(checkpoint, *chief->hold, mark, *chief->store, messages);
  }

  MemoryStorage storage;
  std::unique_ptr<SmallChief> chief;
  std::vector<std::string> messages;
};

// Changes the last byte of a shard of this step.
void Damage(Storage& storage, int64_t step) {
  const std::string shard = absl::StrCat(layout::CheckpointPath(step), "/model-00001-of-00002.safetensors");
  std::string bytes = ReadWholeFile(storage, shard, 1 << 20).value();
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  REQUIRE(ReplaceFile(storage, "scratch", shard, bytes, Access::kShared).ok());
}

TEST_CASE("adopt: a checkpoint from elsewhere counts, is whole, and is still there at the next start", "[checkpoint]") {
  const Backup backup;
  Job job({0, 30});

  CHECK_THAT(job.Adopt(backup.At(20)).value(), Contains("step-000000020 is adopted, and pinned"));

  CHECK(job.chief->log.head().live_size() == 3);
  CHECK(Names(job.storage, "staging/term-000001").empty());
  job.chief.reset();
  const auto next = SmallChief::Start(job.storage, 5).value();
  CHECK(next->messages.empty());
  CHECK(next->newest->manifest().step() == 30);
  const CheckpointReader adopted = CheckpointReader::Open(job.storage, layout::CheckpointPath(20)).value();
  CHECK(adopted.VerifyContent() == absl::OkStatus());
  CHECK(adopted.ComputeDigests()->state == SmallState(20).Digest());
  CHECK(adopted.manifest().SerializeAsString() == backup.At(20).manifest().SerializeAsString());
}

TEST_CASE("adopt: where it is the newest the job goes on from it, and that is said", "[checkpoint]") {
  const Backup backup;
  Job job({0});

  CHECK_THAT(job.Adopt(backup.At(20)).value(), Contains("from which the job goes on"));

  job.chief.reset();
  CHECK(SmallChief::Start(job.storage, 5).value()->newest->manifest().step() == 20);
}

TEST_CASE("adopt: one that was set aside comes back", "[checkpoint]") {
  Job job({0, 10, 20});
  const std::string aside = job.chief->store->SetAside("step-000000010", "bad").value();

  CHECK(job.Adopt(CheckpointReader::OpenFolder(job.storage, aside).value()).status() == absl::OkStatus());

  CHECK(job.chief->store->accepted().contains("step-000000010"));
}

TEST_CASE("adopt: what is there already is no error, and another state of its step is never replaced", "[checkpoint]") {
  const Backup backup;
  Job same({0, 20});
  CHECK(same.Adopt(backup.At(20)).value() == "step-000000020 counts already");

  Job other({0});
  SmallState state(20);
  state.bytes[0][0] = static_cast<char>(state.bytes[0][0] ^ 1);
  REQUIRE(other.chief->Save(state).ok());
  const absl::Status refused = other.Adopt(backup.At(20)).status();
  CHECK(refused.code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(refused.message()), Contains(state.Digest()) && Contains(SmallState(20).Digest()));
  CHECK(other.chief->store->accepted().at("step-000000020").manifest.state_digest() == state.Digest());
}

TEST_CASE("adopt: a backup takes the place of a damaged checkpoint, which is set aside", "[checkpoint]") {
  const Backup backup;
  Job job({0, 20, 30});
  Damage(job.storage, 20);

  CHECK_THAT(job.Adopt(backup.At(20)).value(), Contains("is adopted"));

  CHECK_THAT(absl::StrJoin(job.messages, "\n"), Contains("set aside step-000000020"));
  CHECK(CheckpointReader::Open(job.storage, layout::CheckpointPath(20))->VerifyContent() == absl::OkStatus());
}

TEST_CASE("adopt: retention leaves it", "[checkpoint]") {
  const Backup backup;
  Job job({0, 30});
  REQUIRE(job.Adopt(backup.At(10)).ok());
  for (const int64_t step : {40, 50, 60, 70, 80, 90}) REQUIRE(job.chief->Save(SmallState(step)).ok());
  CHECK(job.chief->store->accepted().contains("step-000000010"));
  CHECK_FALSE(job.chief->store->accepted().contains("step-000000030"));
}

TEST_CASE("adopt: another job's, another history's and damaged ones are refused, and nothing is left of them",
          "[checkpoint]") {
  Backup backup;
  Job job({0});
  const auto refused = [&](const CheckpointReader& checkpoint, const DirectoryMark& mark) {
    const absl::Status status = job.Adopt(checkpoint, mark).status();
    CHECK(job.chief->store->accepted().size() == 1);
    CHECK(Names(job.storage, "staging/term-000001").empty());
    return std::string(status.message());
  };

  DirectoryMark other_job = SmallMark(true);
  other_job.set_job_id("job-2");
  CHECK_THAT(refused(backup.At(20), other_job), Contains("it is of job job-1") && Contains("model.from"));
  DirectoryMark other_line = SmallMark(true);
  other_line.set_lineage("line-2");
  CHECK_THAT(refused(backup.At(20), other_line), Contains("lineage line-1") && Contains("history of line-2"));
  Ancestor& parent = *other_line.add_ancestors();
  parent.set_lineage("line-1");
  parent.set_last_step(10);
  CHECK_THAT(refused(backup.At(20), other_line), Contains("replicas differed"));

  Damage(backup.storage, 20);
  CHECK_THAT(refused(backup.At(20), SmallMark(true)), Contains("was damaged"));
}

}  // namespace
}  // namespace lockstep::chief
