#include "chief/checkpoint/checkpoint_diff.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

// A published state.
struct PublishedPair {
  explicit PublishedPair(const SmallState& state) {
    auto chief = SmallChief::Start(storage).value();
    REQUIRE(chief->Save(state).ok());
    reader.emplace(OpenCheckpoint(storage, state.step).value());
  }

  MemoryStorage storage;
  std::optional<CheckpointReader> reader;
};

// The six values of conv1.bias.
SmallState WithBias(const std::vector<float>& values) {
  SmallState state(10);
  std::memcpy(state.bytes[1].data(), values.data(), values.size() * sizeof(float));
  return state;
}

std::vector<std::string> Diff(const SmallState& first, const SmallState& second) {
  return DiffCheckpoints(*PublishedPair(first).reader, *PublishedPair(second).reader).value();
}

using Lines = std::vector<std::string>;

TEST_CASE("checkpoint diff: equal states differ in nothing", "[checkpoint]") {
  CHECK(Diff(SmallState(10), SmallState(10)).empty());
}

TEST_CASE("checkpoint diff: values are compared by their bits, and the largest distance is told", "[checkpoint]") {
  const SmallState first = WithBias({1, 2, 3, 0, 5, 6});
  CHECK(Diff(first, WithBias({1, 2.5, 3, -0.0f, 5, 5.75})) ==
        Lines{"conv1.bias: 3 of 6 values differ, by at most 0.5"});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  CHECK(Diff(first, WithBias({1, 2, 3, 0, kInfinity, 7})) ==
        Lines{"conv1.bias: 2 of 6 values differ, by at most 1 where both are finite; some are not"});
  CHECK(Diff(WithBias({1, 2, 3, 0, 5, NAN}), WithBias({1, 2, 3, 0, 5, NAN})).empty());
  SmallState step(10);
  step.bytes[6][0] ^= 1;
  CHECK(Diff(SmallState(10), step) == Lines{"lockstep.step: 1 of 1 values differ"});
}

TEST_CASE("checkpoint diff: tensors that one lacks, or that changed type or shape, are named with both",
          "[checkpoint]") {
  SmallState second(10);
  second.layout[1].spec.name = "conv1.shift";
  second.layout[3].spec.shape = {30, 5};
  second.layout[6].spec.dtype = DType::kU64;
  CHECK(Diff(SmallState(10), second) == Lines{
                                            "conv1.bias: only in the first: F32[6]",
                                            "conv1.shift: only in the second: F32[6]",
                                            "lockstep.step: I64[] became U64[]",
                                            "momentum_buffer.conv1.weight: F32[6, 1, 5, 5] became F32[30, 5]",
                                        });
}

}  // namespace
}  // namespace lockstep::chief
