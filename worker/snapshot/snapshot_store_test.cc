#include "worker/snapshot/snapshot_store.h"

#include <catch2/catch.hpp>

#include "worker/device/choice/devices.h"
#include "worker/fakes/deferred_device.h"

namespace lockstep::worker {
namespace {

StateLayout SmallLayout() {
  StateLayout layout;
  layout.tensors.push_back({{"w", DType::kF32, {3}}, StateGroup::kModel, StateKind::kParameter, "w"});
  layout.tensors.push_back({{kStepCounterName, DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
  return layout;
}

TEST_CASE("snapshot: it keeps the state of its boundary while training goes on", "[snapshot]") {
  const auto device = device::MakeDevice(device::DeviceKind::kReference, {}).value();
  const auto state = ReplicaState::Create(SmallLayout(), *device).value();
  SnapshotStore store;
  REQUIRE(store.Reserve(*state, 1).ok());
  state->floats(0)[1] = 5;
  state->set_step(7);
  const std::string digest = state->host().Digest();

  auto snapshot = store.Take(*state).value().state;
  state->floats(0)[1] = 6;
  state->set_step(8);

  CHECK(snapshot->step() == 7);
  CHECK(snapshot->Digest() == digest);
  CHECK(state->host().Digest() != digest);
}

TEST_CASE("snapshot: a dropped one lives on for who reads it, and its buffer is used again", "[snapshot]") {
  const auto device = device::MakeDevice(device::DeviceKind::kReference, {}).value();
  const auto state = ReplicaState::Create(SmallLayout(), *device).value();
  SnapshotStore store;
  REQUIRE(store.Reserve(*state, 1).ok());
  const SnapshotId id{"l", 7, "d"};
  auto reader = store.Take(*state).value().state;
  const void* address = reader->bytes().data();
  store.Name(id, {reader, nullptr});
  REQUIRE(store.Find(id).state == reader);

  store.Drop(id);
  CHECK(store.Find(id).state == nullptr);
  auto second = store.Take(*state).value().state;
  CHECK(second->bytes().data() != address);

  reader.reset();
  CHECK(store.Take(*state).value().state->bytes().data() == address);
}

}  // namespace
}  // namespace lockstep::worker
