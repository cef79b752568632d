// Saves of a state of which a part is never trained: that part is taken over from an earlier checkpoint.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/storage/files.h"
#include "common/storage/forwarding_storage.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

// A small state, and two frozen tensors in two groups that are the same at every step.
SmallState PartlyFrozen(int64_t step) {
  SmallState state(step);
  state.layout.push_back({std::string(kModelGroup), {"backbone.weight", DType::kF32, {512, 512}}, /*frozen=*/true});
  state.bytes.push_back(std::string(1 << 20, 'w'));
  state.layout.push_back({std::string(kEmaGroup), {"lockstep.ema.backbone.bias", DType::kF32, {512}}, /*frozen=*/true});
  state.bytes.push_back(std::string(2048, 'b'));
  return state;
}

// Saves through a sink that may take over what it finds; whether it did.
absl::StatusOr<bool> Save(SmallChief& chief, const SmallState& state, int shares = 2) {
  const std::vector<FrozenSource> sources = chief.store->FrozenSources();
  LS_ASSIGN_OR_RETURN(std::shared_ptr<ShardSink> sink,
                      ShardSink::Open(*chief.hold, state.Id(), state.layout, shares, sources));
  const bool taken_over = sink->ShareComplete(shares - 1);
  for (int share = 0; share < shares - (taken_over ? 1 : 0); ++share) {
    LS_RETURN_IF_ERROR(SendShare(sink, state, share, 100'000));
  }
  LS_ASSIGN_OR_RETURN(StoredShards stored, sink->Finish());
  LS_RETURN_IF_ERROR(chief.store->Publish(std::move(stored), SmallCommit()).status());
  return taken_over;
}

uint64_t IdentityOf(const Storage& storage, int64_t step, const std::string& file) {
  return storage.OpenFile(JoinPath(layout::CheckpointPath(step), file)).value()->facts().identity;
}

absl::Status Verify(const Storage& storage, int64_t step) {
  LS_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(storage, layout::CheckpointPath(step)));
  return reader.VerifyContent(nullptr, nullptr, 1);
}

TEST_CASE("frozen share: two copies are written, and later saves take them over in turn", "[checkpoint]") {
  MemoryStorage storage;
  const auto chief = SmallChief::Start(storage, /*keep_latest=*/3).value();
  CHECK(Save(*chief, PartlyFrozen(1)).value() == false);
  CHECK(Save(*chief, PartlyFrozen(2)).value() == false);
  const uint64_t room = storage.FreeBytes().value();
  for (int64_t step = 3; step <= 6; ++step) CHECK(Save(*chief, PartlyFrozen(step)).value() == true);
  CHECK(room - storage.FreeBytes().value() < (1 << 19));

  const std::string file = "model-00002-of-00002.safetensors";
  const uint64_t at_4 = IdentityOf(storage, 4, file);
  CHECK(IdentityOf(storage, 5, file) != at_4);
  CHECK(IdentityOf(storage, 6, file) == at_4);
  for (int64_t step = 4; step <= 6; ++step) CHECK(Verify(storage, step).ok());
  const auto reader = CheckpointReader::Open(storage, layout::CheckpointPath(6)).value();
  CHECK(reader.manifest().state_digest() == PartlyFrozen(6).Digest());
}

TEST_CASE("frozen share: damage to one copy is a damage to every second checkpoint", "[checkpoint]") {
  MemoryStorage storage;
  auto chief = SmallChief::Start(storage, /*keep_latest=*/4).value();
  for (int64_t step = 1; step <= 6; ++step) REQUIRE(Save(*chief, PartlyFrozen(step)).ok());
  REQUIRE(storage.FlipBit("checkpoints/step-000000006/model-00002-of-00002.safetensors", 70'000, 3).ok());
  CHECK_FALSE(Verify(storage, 6).ok());
  CHECK(Verify(storage, 5).ok());

  chief.reset();
  chief = SmallChief::Start(storage, 4).value();
  REQUIRE(chief->newest.has_value());
  CHECK(chief->newest->manifest().step() == 5);
  // One verified copy is left: the next save brings another.
  CHECK(Save(*chief, PartlyFrozen(7)).value() == false);
  CHECK(Save(*chief, PartlyFrozen(8)).value() == true);
}

TEST_CASE("frozen share: the number of workers may change, the files are called anew", "[checkpoint]") {
  MemoryStorage storage;
  const auto chief = SmallChief::Start(storage, /*keep_latest=*/5).value();
  REQUIRE(Save(*chief, PartlyFrozen(1), 2).ok());
  REQUIRE(Save(*chief, PartlyFrozen(2), 4).ok());
  CHECK(Save(*chief, PartlyFrozen(3), 3).value() == true);
  CHECK(storage.Exists("checkpoints/step-000000003/model-00003-of-00003.safetensors").value());
  CHECK(Verify(storage, 3).ok());
}

TEST_CASE("frozen share: other bits, another form or a checkpoint without such files is not taken over",
          "[checkpoint]") {
  MemoryStorage storage;
  const auto chief = SmallChief::Start(storage, /*keep_latest=*/9).value();
  SmallState before = PartlyFrozen(1);
  SECTION("it was trained then") {
    for (CheckpointTensor& tensor : before.layout) tensor.frozen = false;
    REQUIRE(chief->Save(before).ok());
    before.step = 2;
    REQUIRE(chief->Save(before).ok());
  }
  SECTION("of another form") {
    before.layout[7].spec.shape = {256, 1024};
    REQUIRE(chief->Save(before).ok());
    before.step = 2;
    REQUIRE(chief->Save(before).ok());
  }
  CHECK(Save(*chief, PartlyFrozen(3)).value() == false);
  CHECK(Verify(storage, 3).ok());
}

TEST_CASE("frozen share: bits that the members do not announce end the save, not the checkpoint", "[checkpoint]") {
  MemoryStorage storage;
  const auto chief = SmallChief::Start(storage, /*keep_latest=*/9).value();
  REQUIRE(Save(*chief, PartlyFrozen(1)).ok());
  REQUIRE(Save(*chief, PartlyFrozen(2)).ok());
  SmallState other = PartlyFrozen(3);
  other.bytes[7][500] = 'x';
  CHECK(absl::IsDataLoss(Save(*chief, other).status()));
  CHECK(Verify(storage, 2).ok());
}

// A place without second names, or with room for one of two.
class FewLinks : public ForwardingStorage {
 public:
  FewLinks(Storage& below, int links) : ForwardingStorage(below), links_(links) {}
  absl::Status Link(absl::string_view from, absl::string_view to) override {
    return links_-- > 0 ? ForwardingStorage::Link(from, to) : absl::UnimplementedError("no second names");
  }

 private:
  int links_;
};

TEST_CASE("frozen share: where the place gives no second names, workers send it", "[checkpoint]") {
  for (const int links : {0, 1}) {
    INFO(links << " of two names");
    MemoryStorage memory;
    FewLinks storage(memory, links);
    const auto chief = SmallChief::Start(storage, /*keep_latest=*/9).value();
    for (int64_t step = 1; step <= 3; ++step) CHECK(Save(*chief, PartlyFrozen(step)).value() == false);
    CHECK(Verify(memory, 3).ok());
  }
}

TEST_CASE("frozen share: a save needs room for what is new", "[checkpoint]") {
  MemoryStorage storage;
  const auto chief = SmallChief::Start(storage, /*keep_latest=*/9).value();
  REQUIRE(Save(*chief, PartlyFrozen(1)).ok());
  REQUIRE(Save(*chief, PartlyFrozen(2)).ok());
  const uint64_t used = ~uint64_t{0} - storage.FreeBytes().value();
  storage.SetFaults({.at = {}, .capacity_bytes = used + (1 << 20) + (1 << 18)});
  CHECK(Save(*chief, PartlyFrozen(3)).value() == true);
  SmallState all_new = PartlyFrozen(4);
  all_new.bytes[7][0] = 'x';
  for (CheckpointTensor& tensor : all_new.layout) tensor.frozen = false;
  CHECK(absl::IsResourceExhausted(chief->Save(all_new).status()));
}

TEST_CASE("frozen share: at every crash of a save the newest checkpoint is whole", "[checkpoint]") {
  int64_t crashes = 0;
  for (int64_t at = 0;; ++at) {
    MemoryStorage storage;
    auto chief = SmallChief::Start(storage, /*keep_latest=*/2).value();
    for (int64_t step = 1; step <= 3; ++step) REQUIRE(Save(*chief, PartlyFrozen(step)).ok());
    storage.SetFaults({.at = {{at, StorageFaults::Kind::kCrash}}});
    const bool saved = Save(*chief, PartlyFrozen(4)).ok();
    chief.reset();
    if (storage.operations() <= at) break;
    ++crashes;
    // Of every other crash something survives that was not synced.
    storage.Restart(at % 2 == 0 ? MemoryStorage::Survival::kNothing : MemoryStorage::Survival::kSome,
                    static_cast<uint64_t>(at));
    const auto next = SmallChief::Start(storage, 2).value();
    REQUIRE(next->newest.has_value());
    const int64_t newest = next->newest->manifest().step();
    CHECK((newest == 4 || (!saved && newest == 3)));
    CHECK(Verify(storage, newest).ok());
    if (newest == 3) CHECK(Save(*next, PartlyFrozen(4)).ok());
  }
  CHECK(crashes > 20);
}

}  // namespace
}  // namespace lockstep::chief
