#include "chief/server/open_saves.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "chief/term/storage_term_registry.h"
#include "chief/term/term_claim.h"
#include "common/graph/state_tensors.h"
#include "common/storage/local/local_storage.h"
#include "common/sync/queue.h"

namespace lockstep::chief {
namespace {

const SnapshotId kId{"lineage", 20, "digest"};

// A term of a directory of its own, for real sinks of a state of one tensor.
class SavePlace {
 public:
  SavePlace() {
    const char* base = std::getenv("TEST_TMPDIR");
    path = std::string(base != nullptr ? base : "/tmp") + "/saves-XXXXXX";
    REQUIRE(mkdtemp(path.data()) != nullptr);
    storage_ = LocalStorage::Create(path).value();
    registry_ = std::make_unique<StorageTermRegistry>(*storage_);
    hold_ = TermHold::Take(*storage_, *registry_, TermOwner()).value();
  }
  ~SavePlace() { std::filesystem::remove_all(path); }

  absl::StatusOr<std::unique_ptr<ShardSink>> MakeSink(const SnapshotId& id, uint32_t shares) {
    ++made;
    StateLayout layout;
    layout.tensors.push_back({{"w", DType::kF32, {6}}, StateGroup::kModel, StateKind::kParameter, "w"});
    layout.tensors.push_back({{kStepCounterName, DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
    return ShardSink::Open(*hold_, id, ToCheckpointTensors(layout), static_cast<int>(shares));
  }
  bool StagingIsEmpty() const {
    return std::filesystem::is_empty(std::filesystem::path(path) / "staging" / "term-000001");
  }

  std::string path;
  int made = 0;

 private:
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<StorageTermRegistry> registry_;
  std::unique_ptr<TermHold> hold_;
};

TEST_CASE("open saves: files are made by the first share, and once", "[server]") {
  SavePlace place;
  OpenSaves saves([&](const SnapshotId& id, uint32_t shares) { return place.MakeSink(id, shares); });

  saves.Open(kId, 3);
  CHECK(place.made == 0);
  const auto sink = saves.Sink(kId);

  REQUIRE(sink.ok());
  CHECK((*sink)->shares() == 3);
  CHECK(saves.Sink(kId).value() == *sink);
  CHECK(place.made == 1);
}

TEST_CASE("open saves: a storage that hangs holds up nobody who opens or closes", "[server]") {
  BoundedQueue<int> entered(1);
  BoundedQueue<int> released(1);
  OpenSaves saves([&](const SnapshotId&, uint32_t) -> absl::StatusOr<std::unique_ptr<ShardSink>> {
    entered.Push(1);
    released.Pop();
    return absl::UnavailableError("the disk hung");
  });
  saves.Open(kId, 1);
  absl::Status status;
  std::thread sender([&] { status = saves.Sink(kId).status(); });
  REQUIRE(entered.Pop().has_value());

  const auto closed = saves.Close(kId);
  saves.Open(kId, 2);

  CHECK(closed != nullptr);
  released.Push(1);
  sender.join();
  CHECK(absl::IsUnavailable(status));
}

TEST_CASE("open saves: what was abandoned leaves no files and takes no shares", "[server]") {
  SavePlace place;
  OpenSaves saves([&](const SnapshotId& id, uint32_t shares) { return place.MakeSink(id, shares); });
  saves.Open(kId, 1);
  REQUIRE(saves.Sink(kId).ok());
  CHECK_FALSE(place.StagingIsEmpty());

  const auto closed = saves.Close(kId);
  CHECK(absl::IsFailedPrecondition(saves.Sink(kId).status()));
  OpenSaves::Abandon(closed);
  OpenSaves::Abandon(nullptr);

  CHECK(place.StagingIsEmpty());
  CHECK(saves.Close(kId) == nullptr);
}

TEST_CASE("open saves: an order for a save that was given up is not carried out on the next one of the same snapshot",
          "[server]") {
  SavePlace place;
  OpenSaves saves([&](const SnapshotId& id, uint32_t shares) { return place.MakeSink(id, shares); });
  saves.Open(kId, 1);
  const auto ordered = saves.Find(kId);
  OpenSaves::Abandon(saves.Close(kId));
  CHECK(saves.Find(kId) == nullptr);
  saves.Open(kId, 1);

  CHECK(absl::IsFailedPrecondition(saves.Sink(kId, ordered).status()));
  CHECK(absl::IsFailedPrecondition(saves.Sink(kId, nullptr).status()));
  CHECK(saves.Sink(kId, saves.Find(kId)).ok());
}

TEST_CASE("open saves: a disk that refused is asked again", "[server]") {
  SavePlace place;
  bool full = true;
  OpenSaves saves([&](const SnapshotId& id, uint32_t shares) -> absl::StatusOr<std::unique_ptr<ShardSink>> {
    if (full) return absl::ResourceExhaustedError("full");
    return place.MakeSink(id, shares);
  });
  saves.Open(kId, 1);

  CHECK(absl::IsResourceExhausted(saves.Sink(kId).status()));
  full = false;

  CHECK(saves.Sink(kId).ok());
}

}  // namespace
}  // namespace lockstep::chief
