// Power cuts, full disks and damage at every operation and every file: what was published stays, what is torn is never
// accepted.
#include <catch2/catch.hpp>
#include <string>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "chief/checkpoint/found_mark.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Kind = StorageFaults::Kind;
using Survival = MemoryStorage::Survival;

void FailAt(MemoryStorage& storage, int64_t operation, Kind kind) {
  StorageFaults faults;
  faults.at[operation] = kind;
  storage.SetFaults(faults);
}

// Every checkpoint that stands under a published name verifies; returns how many there are.
int CheckAllVerify(const Storage& storage) {
  const auto list = ListCheckpoints(storage).value();
  for (const CheckpointSummary& summary : list) {
    CAPTURE(summary.name);
    REQUIRE(summary.status == absl::OkStatus());
    const auto reader = CheckpointReader::Open(storage, JoinPath(layout::kCheckpoints, summary.name));
    REQUIRE(reader->VerifyContent() == absl::OkStatus());
    CHECK(reader->ComputeDigests()->state == SmallState(summary.manifest.step()).Digest());
  }
  return static_cast<int>(list.size());
}

TEST_CASE("commit: cut off by a crash at any operation, the old or the new checkpoint is there", "[checkpoint]") {
  int before_publish = 0, after_publish = 0;
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    for (const auto survival : {Survival::kNothing, Survival::kSome}) {
      CAPTURE(at, static_cast<int>(survival));
      MemoryStorage storage;
      auto chief = SmallChief::Start(storage, 1).value();
      REQUIRE(chief->Save(SmallState(10)).ok());

      FailAt(storage, at, Kind::kCrash);
      const auto saved = chief->Save(SmallState(20));  // with keep_latest 1: publishes, then removes step 10
      finished = saved.ok() && storage.operations() <= at;
      chief.reset();
      storage.Restart(survival, static_cast<uint64_t>(at));
      const auto restarted = SmallChief::Start(storage, 1);

      REQUIRE(restarted.status() == absl::OkStatus());
      CHECK((*restarted)->messages.empty());  // nothing torn ever stood under a published name
      REQUIRE((*restarted)->newest.has_value());
      const int64_t step = (*restarted)->newest->manifest().step();
      CHECK((step == 10 || step == 20));
      if (saved.ok()) CHECK(step == 20);
      CHECK(CheckAllVerify(storage) >= 1);
      (step == 10 ? before_publish : after_publish)++;
      REQUIRE((*restarted)->Save(SmallState(30)).ok());
      CHECK(CheckAllVerify(storage) == 1);
    }
  }
  CHECK(before_publish > 20);
  CHECK(after_publish > 10);
}

TEST_CASE("commit: step 0, cut off at any operation, is published or can be written again", "[checkpoint]") {
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    FailAt(storage, at, Kind::kCrash);
    {
      auto chief = SmallChief::Start(storage);
      finished = chief.ok() && (*chief)->Save(SmallState(0)).ok();
    }
    storage.Restart(Survival::kSome, static_cast<uint64_t>(at));

    auto restarted = SmallChief::Start(storage);

    REQUIRE(restarted.status() == absl::OkStatus());
    if (finished) CHECK((*restarted)->newest.has_value());
    CHECK((*restarted)->messages.empty());
    REQUIRE((*restarted)->Save(SmallState(0)).status() == absl::OkStatus());
    CHECK(CheckAllVerify(storage) == 1);
  }
}

TEST_CASE("commit: a failed write at any operation loses nothing and can be repeated", "[checkpoint]") {
  for (const Kind kind : {Kind::kDiskFull, Kind::kIoError}) {
    int failures = 0;
    bool finished = false;
    for (int64_t at = 0; !finished; ++at) {
      CAPTURE(at, static_cast<int>(kind));
      MemoryStorage storage;
      auto chief = SmallChief::Start(storage, 1).value();
      REQUIRE(chief->Save(SmallState(10)).ok());

      FailAt(storage, at, kind);
      const auto saved = chief->Save(SmallState(20));
      finished = storage.operations() <= at;
      storage.SetFaults({});

      if (!saved.ok()) {
        ++failures;
        CHECK((absl::IsResourceExhausted(saved.status()) || absl::IsUnavailable(saved.status())));
        CHECK_THAT(std::string(saved.status().message()), Contains("memory:/"));
        if (kind == Kind::kDiskFull) CHECK_THAT(std::string(saved.status().message()), Contains("needed"));
      }
      CHECK(CheckAllVerify(storage) >= 1);
      const auto again = chief->Save(SmallState(20));
      REQUIRE(again.status() == absl::OkStatus());
      CHECK(again->existed == (saved.ok() || again->existed));
      CHECK(CheckpointReader::Open(storage, "checkpoints/step-000000020").ok());
      CHECK(storage.List(layout::kSetAside).value().empty());
      REQUIRE(chief->Save(SmallState(30)).ok());
      CHECK(CheckAllVerify(storage) >= 1);
    }
    CHECK(failures > 20);
  }
}

// All files of a checkpoint, relative to it.
std::vector<std::string> FilesOf(const Storage& storage, const std::string& path) {
  std::vector<std::string> files;
  const auto entries = storage.List(path).value();
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory) {
      files.push_back(entry.name);
      continue;
    }
    for (const std::string& below : FilesOf(storage, JoinPath(path, entry.name))) {
      files.push_back(JoinPath(entry.name, below));
    }
  }
  return files;
}

TEST_CASE("recovery: damage to any file of the newest checkpoint is named, and the one before serves", "[checkpoint]") {
  MemoryStorage probe;
  auto prober = SmallChief::Start(probe).value();
  REQUIRE(prober->Save(SmallState(20)).ok());
  const std::string newest = "checkpoints/step-000000020";
  const std::vector<std::string> files = FilesOf(probe, newest);
  REQUIRE(files.size() == 12);

  for (const std::string& file : files) {
    for (const std::string damage : {"flip-first", "flip-middle", "flip-last", "cut", "empty", "gone"}) {
      CAPTURE(file, damage);
      MemoryStorage storage;
      auto chief = SmallChief::Start(storage).value();
      REQUIRE(chief->Save(SmallState(10)).ok());
      REQUIRE(chief->Save(SmallState(20)).ok());
      const std::string path = JoinPath(newest, file);
      const uint64_t size = storage.OpenFile(path).value()->size();
      if (damage == "flip-first") REQUIRE(storage.FlipBit(path, 0, 0).ok());
      if (damage == "flip-middle") REQUIRE(storage.FlipBit(path, size / 2, 3).ok());
      if (damage == "flip-last") REQUIRE(storage.FlipBit(path, size - 1, 0).ok());
      if (damage == "cut") REQUIRE(storage.Truncate(path, size - 1).ok());
      if (damage == "empty") REQUIRE(storage.Truncate(path, 0).ok());
      if (damage == "gone") REQUIRE(storage.RemoveTree(path).ok());
      chief.reset();

      const auto restarted = SmallChief::Start(storage);

      REQUIRE(restarted.status() == absl::OkStatus());
      CHECK((*restarted)->newest->manifest().step() == 10);
      REQUIRE((*restarted)->messages.size() == 1);
      CHECK_THAT((*restarted)->messages[0], Contains("step-000000020") && Contains(std::string(BaseName(file))));
      CHECK(storage.Exists("set_aside/step-000000020-bad-term-000002").value());
      REQUIRE((*restarted)->Save(SmallState(20)).ok());  // computed again
      CHECK(CheckAllVerify(storage) == 2);
    }
  }
}

TEST_CASE("recovery: when nothing verifies after step 0, it stops and says why", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  REQUIRE(chief->Save(SmallState(0)).ok());
  REQUIRE(storage.FlipBit("checkpoints/step-000000000/optimizer/optimizer-00002-of-00002.safetensors", 300, 1).ok());
  chief.reset();

  for (int start = 0; start < 2; ++start) {  // at every start, also when the bad one was moved away by the first
    const auto restarted = SmallChief::Start(storage);
    CHECK(restarted.status().code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(restarted.status().message()),
               Contains("no checkpoint") && Contains("set_aside") && Contains("--dir"));
    if (start == 0)
      CHECK_THAT(std::string(restarted.status().message()), Contains("optimizer-00002-of-00002.safetensors"));
  }
}

TEST_CASE("recovery: a device error or a newer format stops, and moves nothing", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  REQUIRE(chief->Save(SmallState(0)).ok());
  chief.reset();
  const std::string path = "checkpoints/step-000000000/manifest.json";
  std::string json = ReadWholeFile(storage, path, 1 << 20).value();
  json.replace(json.find("\"format_version\": 2"), 19, "\"format_version\": 9");
  REQUIRE(storage.RemoveTree(path).ok());
  REQUIRE(WriteNewFile(storage, path, json, Access::kShared).ok());

  const auto restarted = SmallChief::Start(storage);

  CHECK(restarted.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(restarted.status().message()), Contains("format version 9"));
  CHECK(storage.Exists(path).value());
}

TEST_CASE("recovery: what an older chief publishes late is set aside, by later publishing and at later starts",
          "[checkpoint]") {
  // An older chief of a storage that did not fence it (not linearizable): its directory appears after the claim.
  for (const bool at_restart : {false, true}) {
    CAPTURE(at_restart);
    MemoryStorage old_world;
    auto old_chief = SmallChief::Start(old_world).value();
    REQUIRE(old_chief->Save(SmallState(10)).ok());
    MemoryStorage storage;
    auto first = SmallChief::Start(storage).value();
    REQUIRE(first->Save(SmallState(5)).ok());
    first.reset();
    auto chief = SmallChief::Start(storage).value();
    REQUIRE(chief->hold->term() == 2);

    for (const std::string& file : FilesOf(old_world, "checkpoints/step-000000010")) {
      const std::string path = JoinPath("checkpoints/step-000000010", file);
      REQUIRE(storage.CreateDirectories(ParentPath(path)).ok());
      REQUIRE(WriteNewFile(storage, path, ReadWholeFile(old_world, path, 1 << 20).value(), Access::kShared).ok());
    }
    if (at_restart) {
      chief.reset();
      chief = SmallChief::Start(storage).value();
      REQUIRE(chief->messages.size() == 1);
      CHECK_THAT(chief->messages[0], Contains("step-000000010") && Contains("term 1") && Contains("term 2"));
      CHECK(chief->newest->manifest().step() == 5);
    } else {
      const auto published = chief->Save(SmallState(10)).value();
      REQUIRE(published.messages.size() == 1);
      CHECK_THAT(published.messages[0], Contains("step-000000010") && Contains("older chief"));
      CHECK(published.manifest.term() == 2);
      CHECK_FALSE(published.existed);
    }
    CHECK(storage.List(layout::kSetAside).value().size() == 1);
  }
}

TEST_CASE("recovery: checkpoints of an abandoned lineage are set aside, those of an ancestor serve", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 5).value();
  for (const int64_t step : {0, 10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
  DirectoryMark mark = SmallMark(true);
  mark.set_lineage("line-2");
  Ancestor* ancestor = mark.add_ancestors();
  ancestor->set_lineage("line-1");
  ancestor->set_last_step(10);
  REQUIRE(chief->SetHistory(mark).ok());
  chief.reset();

  const auto restarted = SmallChief::Start(storage, 5).value();

  CHECK(restarted->newest->manifest().step() == 10);
  CHECK(restarted->store->accepted().size() == 2);
  REQUIRE(restarted->messages.size() == 1);
  CHECK_THAT(restarted->messages[0], Contains("step-000000020") && Contains("line-2"));
}

TEST_CASE("recovery: what any generation of the job's lineage published serves", "[checkpoint]") {
  const DirectoryMark mark = SmallMark(true);
  for (const auto& [lineage, belongs] : {std::pair("line-1+2.7", true), {"line-1", true}, {"line-2+2.7", false}}) {
    Manifest manifest;
    manifest.set_job_id(mark.job_id());
    manifest.set_lineage(lineage);
    CAPTURE(lineage);
    CHECK(BelongsTo(manifest, mark) == belongs);
  }
}

TEST_CASE("recovery: an ancestor's ancestor serves only up to where the nearer one parted", "[checkpoint]") {
  DirectoryMark mark = SmallMark(true);
  mark.set_lineage("c");
  for (const auto& [lineage, step] : {std::pair<const char*, int>{"b", 5}, {"a", 8}}) {
    Ancestor* ancestor = mark.add_ancestors();
    ancestor->set_lineage(lineage);
    ancestor->set_last_step(step);
  }
  const auto belongs = [&](const char* lineage, int64_t step, const char* job = "job-1") {
    Manifest manifest;
    manifest.set_job_id(job);
    manifest.set_lineage(lineage);
    manifest.set_step(step);
    return BelongsTo(manifest, mark);
  };
  CHECK(belongs("c", 1000));
  CHECK(belongs("b", 5));
  CHECK_FALSE(belongs("b", 6));
  CHECK(belongs("a", 5));
  CHECK_FALSE(belongs("a", 6));
  CHECK_FALSE(belongs("x", 0));
  CHECK_FALSE(belongs("c", 0, "job-2"));
}

TEST_CASE("commit: a chief that was overtaken publishes nothing and says so", "[checkpoint]") {
  // The newer chief takes over at every operation of the older one's save.
  int fenced = 0;
  bool finished = false;
  for (int64_t at = 0; !finished; ++at) {
    CAPTURE(at);
    MemoryStorage storage;
    StorageTermRegistry registry(storage);
    auto older = SmallChief::Start(storage).value();
    REQUIRE(older->Save(SmallState(10)).ok());
    std::unique_ptr<SmallChief> newer;
    storage.SetFaults({});
    storage.SetHook([&](int64_t number, absl::string_view) {
      if (number != at) return;
      storage.SetHook(nullptr);
      storage.DropLocks();  // the older chief is of another machine
      newer = SmallChief::Start(storage).value();
    });

    const auto saved = older->Save(SmallState(20));

    finished = newer == nullptr;
    if (finished) break;
    const bool seen = newer->store->accepted().contains("step-000000020");
    if (saved.ok()) {
      CHECK(seen);
    } else {
      CHECK((IsFenced(saved.status()) || seen));
    }
    fenced += IsFenced(saved.status()) ? 1 : 0;
    CHECK(storage.Exists("checkpoints/step-000000020").value() == seen);
    CHECK(newer->Save(SmallState(20)).value().existed == seen);
    CHECK(IsFenced(older->Save(SmallState(30)).status()));
    CHECK_FALSE(storage.Exists(layout::StagingPath(older->hold->term())).value());
    CHECK(CheckAllVerify(storage) >= 1);
  }
  CHECK(fenced > 20);
}

}  // namespace
}  // namespace lockstep::chief
