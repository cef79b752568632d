// The order of the sums behind an update by norms (norm_formulas.h), made visible. The squares of a parameter sum up to
// what is half way between two floats when small ones are lost that come one by one, and to more when they come
// together; the step of an element shows which.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/contracts/step_math_contract.h"
#include "worker/arithmetic/norm_formulas.h"
#include "worker/device/step_math.h"

namespace lockstep {
namespace {

using device::kNormBlock;
using device::kNormLanes;
using device::kNormWarp;

// Where small values lie, and whether their squares have to count.
struct SmallValues {
  const char* name;
  std::vector<int64_t> at;
  bool count;
};

std::vector<int64_t> Every(int64_t first, int64_t distance, int count = 16) {
  std::vector<int64_t> at;
  for (int i = 0; i < count; ++i) at.push_back(first + i * distance);
  return at;
}

// The first value after a step of a parameter of 20 blocks: 0 where the small values were lost, -2^-23 where not.
float SteppedFirst(device::Device& device, const std::vector<int64_t>& small) {
  const auto count = static_cast<size_t>(20 * kNormBlock);
  // Value, gradient, both slots.
  std::vector<float> host(4 * count);
  // Squares of 1 + 2^-23 + 2^-48, all in the first lane: the square of 1 + 2^-24.
  host[0] = 1.0f;
  host[kNormLanes] = host[2 * kNormLanes] = 0x1p-12f;
  host[3 * kNormLanes] = 0x1p-24f;
  for (const int64_t at : small) host[static_cast<size_t>(at)] = 0x1p-27f;
  host[count] = 1.0f;  // the direction is 1 / (1 + epsilon) there, and 0 elsewhere
  const auto stream = *device.NewStream();
  const auto memory = *device.Allocate(host.size() * sizeof(float));
  REQUIRE(stream
              ->CopyToDevice(memory->address(), reinterpret_cast<const std::byte*>(host.data()),
                             host.size() * sizeof(float))
              .ok());
  auto* const at = reinterpret_cast<float*>(memory->address());
  const std::vector<device::UpdateTensor> tensors = {{.size = static_cast<int64_t>(count),
                                                      .value = at,
                                                      .gradient = at + count,
                                                      .slots = {at + 2 * count, at + 3 * count}}};
  const device::UpdateScalars scalars{
      .lr = 1, .one_minus_beta1 = 1, .one_minus_beta2 = 1, .step_size = 1, .correction2 = 1, .epsilon = 1};
  const auto table = *device.step_math().MakeUpdateTable({.kind = device::UpdateFormula::Kind::kLamb}, tensors);
  REQUIRE(device.step_math().Update(*stream, *table, scalars, nullptr).ok());
  REQUIRE(stream->CopyToHost(reinterpret_cast<std::byte*>(host.data()), memory->address(), sizeof(float)).ok());
  REQUIRE(stream->Synchronize().ok());
  return host[0];
}

// The mean square, times 1024, of a row or a column of so many gradients: 1 where the small ones were lost, 1 + 2^-23
// where not. `second` is where the square lies that brings the sum half way to the latter.
float MovedMean(device::Device& device, const device::TrailingMatrix& shape, int64_t second,
                const std::vector<int64_t>& small) {
  constexpr size_t kCount = 1024;
  // Value, gradient, both slots.
  std::vector<float> host(4 * kCount);
  host[kCount] = 1.0f;
  host[kCount + static_cast<size_t>(second)] = 0x1p-12f;
  for (const int64_t at : small) host[kCount + static_cast<size_t>(at)] = 0x1p-27f;
  const auto stream = *device.NewStream();
  const auto memory = *device.Allocate(host.size() * sizeof(float));
  REQUIRE(stream
              ->CopyToDevice(memory->address(), reinterpret_cast<const std::byte*>(host.data()),
                             host.size() * sizeof(float))
              .ok());
  auto* const at = reinterpret_cast<float*>(memory->address());
  const std::vector<device::UpdateTensor> tensors = {{.size = kCount,
                                                      .value = at,
                                                      .gradient = at + kCount,
                                                      .slots = {at + 2 * kCount, at + 3 * kCount},
                                                      .shape = shape}};
  const device::UpdateScalars scalars{.one_minus_beta2 = 1, .epsilon = 1, .least_square = 1};
  const auto table = *device.step_math().MakeUpdateTable({.kind = device::UpdateFormula::Kind::kAdafactor}, tensors);
  REQUIRE(device.step_math().Update(*stream, *table, scalars, nullptr).ok());
  REQUIRE(stream->CopyToHost(reinterpret_cast<std::byte*>(host.data()), memory->address(), host.size() * sizeof(float))
              .ok());
  REQUIRE(stream->Synchronize().ok());
  return 1024 * host[(shape.rows == 1 ? 2 : 3) * kCount];
}

}  // namespace

void CheckOrderOfMeans(device::Device& device) {
  const float lost = 1.0f, counted = 1.0f + 0x1p-23f;
  const device::TrailingMatrix row{1, 1024}, column{1024, 1};
  CHECK(MovedMean(device, row, kNormWarp, Every(2 * kNormWarp, kNormWarp, 8)) == lost);
  CHECK(MovedMean(device, row, kNormWarp, Every(5, kNormWarp, 8)) == counted);
  CHECK(MovedMean(device, row, kNormWarp, {1, 3, 5, 7}) == counted);
  CHECK(MovedMean(device, row, kNormWarp, Every(16, 1, 4)) == lost);
  CHECK(MovedMean(device, column, 1, Every(2, 1, 8)) == lost);
  CHECK(MovedMean(device, column, 1, Every(device::kNormRows, 1, 8)) == counted);
  CHECK(MovedMean(device, column, 1, Every(device::kNormRows, device::kNormRows, 3)) == lost);
}

void CheckOrderOfNorms(device::Device& device) {
  const SmallValues cases[] = {
      {"nowhere", {}, false},
      {"in the first lane, behind the large one", Every(4 * kNormLanes, kNormLanes, 12), false},
      {"in one other lane", Every(5, kNormLanes), true},
      {"in a row, and warps fold first", Every(kNormWarp, 1), true},
      {"in odd lanes, which fold first", {1, 3, 5, 7, 257, 259, 261, 263}, true},
      {"behind the middle of the warp", Every(16, 1, 8), false},
      {"one in each warp", Every(kNormWarp, kNormWarp, 7), false},
      {"in another block", Every(kNormBlock, 1), true},
      {"one in each block", Every(kNormBlock, kNormBlock), false},
  };
  for (const SmallValues& c : cases) {
    CAPTURE(c.name);
    CHECK(SteppedFirst(device, c.at) == (c.count ? -0x1p-23f : 0.0f));
  }
}

}  // namespace lockstep
