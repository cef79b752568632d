#include "worker/step/replica_state.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>

#include "worker/device/host/reference_device.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kFloats = int64_t{8} << 20;  // takes longer to copy than to begin to write to

StateLayout LargeLayout() {
  StateLayout layout;
  layout.tensors.push_back({{"a", DType::kF32, {kFloats}}, StateGroup::kModel, StateKind::kParameter, "a"});
  layout.tensors.push_back({{kStepCounterName, DType::kI64, {}}, StateGroup::kOptimizer, StateKind::kCounter, ""});
  layout.tensors.push_back({{"z", DType::kF32, {kFloats}}, StateGroup::kModel, StateKind::kParameter, "z"});
  return layout;
}

bool AllAre(const HostState& state, float value) {
  for (const int tensor : {state.layout().Find("a"), state.layout().Find("z")}) {
    const absl::Span<const std::byte> bytes = state.tensor(tensor);
    const auto* const floats = reinterpret_cast<const float*>(bytes.data());
    if (!std::all_of(floats, floats + kFloats, [&](float f) { return f == value; })) return false;
  }
  return true;
}

// From the end on, which is copied last.
void FillBackwards(ReplicaState& state, float value) {
  for (const int tensor : {state.layout().Find("z"), state.layout().Find("a")}) {
    float* const floats = state.floats(tensor);
    std::fill(std::make_reverse_iterator(floats + kFloats), std::make_reverse_iterator(floats), value);
  }
}

}  // namespace

TEST_CASE("replica state: a copy that a thread makes keeps its boundary, whatever writes next", "[state]") {
  const auto device = device::MakeReferenceDevice({}).value();
  const auto stream = device->NewStream().value();
  const auto state = ReplicaState::Create(LargeLayout(), *device).value();
  FillBackwards(*state, 1);
  HostState copy = state->NewCopy().value();
  const auto writers = {
      std::function<void()>([&] {
        REQUIRE(state->BeginWrite(*stream).ok());
        FillBackwards(*state, 2);
        REQUIRE(state->EndWrite(*stream).ok());
      }),
      std::function<void()>([&] {
        const absl::Span<std::byte> bytes = state->host().bytes();
        std::fill(bytes.rbegin(), bytes.rend(), std::byte{0});
      }),
  };
  for (const std::function<void()>& write : writers) {
    FillBackwards(*state, 1);

    const std::shared_ptr<device::Event> copied = state->CopyTo(copy).value();
    REQUIRE(copied != nullptr);
    write();

    CHECK(copied->Ready());
    CHECK(AllAre(copy, 1));
    CHECK_FALSE(AllAre(state->host(), 1));
  }
}

TEST_CASE("replica state: the step counter is in a copy at once, and of two copies each has its own", "[state]") {
  const auto device = device::MakeReferenceDevice({}).value();
  const auto state = ReplicaState::Create(LargeLayout(), *device).value();
  HostState first = state->NewCopy().value();
  HostState second = state->NewCopy().value();
  FillBackwards(*state, 3);
  state->set_step(7);

  const auto first_copied = state->CopyTo(first).value();
  state->set_step(8);  // as of a step that changes nothing else
  const auto second_copied = state->CopyTo(second).value();
  state->set_step(9);

  REQUIRE(second_copied->Wait().ok());
  CHECK(first_copied->Ready());
  CHECK(first.step() == 7);
  CHECK(second.step() == 8);
  CHECK(state->step() == 9);
  CHECK(AllAre(first, 3));
  CHECK(AllAre(second, 3));
}

TEST_CASE("replica state: one that ends makes the copies that were begun", "[state]") {
  const auto device = device::MakeReferenceDevice({}).value();
  auto state = ReplicaState::Create(LargeLayout(), *device).value();
  FillBackwards(*state, 4);
  HostState copy = state->NewCopy().value();
  const auto copied = state->CopyTo(copy).value();

  state.reset();

  CHECK(copied->Ready());
  CHECK(AllAre(copy, 4));
}

}  // namespace lockstep::worker
