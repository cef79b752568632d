// Runs random graphs on devices and compares the values of one device with another's.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_TESTS_CONTRACTS_DEVICE_COMPARISON_H_
#define LOCKSTEP_TESTS_CONTRACTS_DEVICE_COMPARISON_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "tests/contracts/device_cases.h"
#include "worker/device/device.h"
#include "worker/plan/plan.h"

namespace lockstep {

template <typename T>
T Must(absl::StatusOr<T> value) {
  INFO(value.status().ToString());
  REQUIRE(value.ok());
  return *std::move(value);
}

void MustOk(const absl::Status& status);

// One host tensor per input: floats in [-1, 1), or their absolute values; positive ones for variances; labels 0, 1 or
// 2; masks of zeros and ones; few distinct numbers where ties matter.
std::vector<Tensor> RandomInputs(const std::vector<TensorSpec>& specs, uint64_t seed, bool absolute);

// The same for the inputs of a graph, by name, and its constants.
std::map<std::string, Tensor> RandomSources(const Graph& graph, uint64_t seed);

// The outputs of a graph by name.
using Values = std::map<std::string, std::vector<double>>;

// Plans and runs `graph` on random inputs from `seed`, or on their absolute values. `choices` (may be null): the
// kernels to use.
Values RunCase(device::Device& device, const Graph& graph, uint64_t seed, bool absolute,
               const worker::KernelChoices* choices = nullptr);

// The kernels that the device chooses for `graph`.
worker::KernelChoices ChoicesOf(device::Device& device, const Graph& graph);

// For sums of products: |error| <= terms * eps * (the same sum of absolute values), for any order of summation, plus
// the reference's own rounding. For others: a multiple of eps of the largest element, which covers cancellation.
void CompareCase(const DeviceCase& c, const Values& expected, const Values& got, const Values& magnitudes);

// The seeds to test; LOCKSTEP_TEST_SEED selects a single one.
std::vector<uint64_t> Seeds();

// `graph` with a further node at every input and output of F32, so that the op's own operands and results are values of
// the plan, which may share memory.
Graph Within(const Graph& graph);

// Checks that sharing memory inside a plan changes no bit of `c`.
void CheckSharing(device::Device& device, const DeviceCase& c, uint64_t seed);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_DEVICE_COMPARISON_H_
