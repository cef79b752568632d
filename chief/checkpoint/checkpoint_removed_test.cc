// What somebody removed by hand, or put there, while a chief lives: it goes on.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

TEST_CASE("removed by hand: without its staging directory a chief loses one save at most", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  REQUIRE(chief->Save(SmallState(10)).ok());

  REQUIRE(storage.RemoveTree(layout::kStaging).ok());
  CHECK(chief->Save(SmallState(20)).status() == absl::OkStatus());

  // In the middle of a save: that one fails as an outage does, and succeeds when it is tried again.
  const SmallState state(30);
  const std::shared_ptr<ShardSink> sink = ShardSink::Open(*chief->hold, state.Id(), state.layout, 1).value();
  REQUIRE(storage.RemoveTree(layout::kStaging).ok());
  absl::Status cut = SendShare(sink, state, 0);
  if (cut.ok()) cut = sink->Finish().status();
  CHECK(absl::IsNotFound(cut));
  CHECK(sink->Abandon().ok());
  CHECK(chief->Save(state).status() == absl::OkStatus());
  CHECK(CheckpointReader::Open(storage, "checkpoints/step-000000030")->VerifyContent() == absl::OkStatus());
}

TEST_CASE("removed by hand: without the directory of checkpoints a chief begins another one", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage).value();
  for (const int64_t step : {10, 20}) REQUIRE(chief->Save(SmallState(step)).ok());
  REQUIRE(storage.RemoveTree(layout::kCheckpoints).ok());

  for (const int64_t step : {30, 40, 50}) CHECK(chief->Save(SmallState(step)).status() == absl::OkStatus());

  CHECK(Names(storage, layout::kCheckpoints) == std::vector<std::string>{"step-000000040", "step-000000050"});
}

TEST_CASE("removed by hand: retention forgets a checkpoint that is gone, and counts those that are there",
          "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, 3).value();
  for (const int64_t step : {10, 20, 30}) REQUIRE(chief->Save(SmallState(step)).ok());
  REQUIRE(storage.RemoveTree("checkpoints/step-000000020").ok());

  const auto first = chief->Save(SmallState(40)).value();
  CHECK(Names(storage, layout::kCheckpoints) ==
        std::vector<std::string>{"step-000000010", "step-000000030", "step-000000040"});
  const auto second = chief->Save(SmallState(50)).value();

  CHECK(first.messages.empty());
  CHECK(Names(storage, layout::kCheckpoints) ==
        std::vector<std::string>{"step-000000030", "step-000000040", "step-000000050"});
  REQUIRE(second.messages.size() == 1);
  CHECK_THAT(second.messages[0], Contains("step-000000020") && Contains("gone"));
  CHECK_FALSE(chief->store->accepted().contains("step-000000020"));
  CHECK(chief->Save(SmallState(60)).value().messages.empty());
  CHECK(Names(storage, layout::kCheckpoints).size() == 3);
}

TEST_CASE("removed by hand: a step that is published again is written again", "[checkpoint]") {
  for (const std::string lineage : {"line-1", "line-2"}) {
    CAPTURE(lineage);
    MemoryStorage storage;
    auto chief = SmallChief::Start(storage).value();
    REQUIRE(chief->Save(SmallState(5)).ok());
    REQUIRE(storage.RemoveTree("checkpoints/step-000000005").ok());

    const auto again = chief->Save(SmallState(5), 2, lineage);

    REQUIRE(again.status() == absl::OkStatus());
    CHECK_FALSE(again->existed);
    CHECK(CheckpointReader::Open(storage, "checkpoints/step-000000005")->manifest().lineage() == lineage);
    CHECK(storage.List(layout::kSetAside).value().empty());
  }
}

TEST_CASE("checkpoint: what turns up without a whole manifest is set aside as bad, and no chief is blamed for it",
          "[checkpoint]") {
  for (const std::string manifest : {"", "{", "of another step"}) {
    CAPTURE(manifest);
    MemoryStorage storage;
    auto chief = SmallChief::Start(storage).value();
    REQUIRE(chief->Save(SmallState(10)).ok());
    REQUIRE(storage.CreateDirectories("checkpoints/step-000000015").ok());
    const std::string path = "checkpoints/step-000000015/manifest.json";
    const std::string other = ReadWholeFile(storage, "checkpoints/step-000000010/manifest.json", 1 << 20).value();
    if (!manifest.empty()) {
      REQUIRE(WriteNewFile(storage, path, manifest == "{" ? manifest : other, Access::kShared).ok());
    }

    const auto published = chief->Save(SmallState(20));

    REQUIRE(published.status() == absl::OkStatus());
    REQUIRE(published->messages.size() == 1);
    CHECK_THAT(published->messages[0],
               Contains("step-000000015") && Contains("manifest.json") && !Contains("older chief"));
    CHECK(Names(storage, layout::kSetAside) == std::vector<std::string>{"step-000000015-bad-term-000001"});
    CHECK_FALSE(chief->store->accepted().contains("step-000000015"));
  }
}

}  // namespace
}  // namespace lockstep::chief
