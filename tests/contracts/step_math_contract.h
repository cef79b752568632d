// The contract suite of a device's step arithmetic: its bits equal those of the functions for host memory.
//
// Threading: thread-compatible; call on the device's owner thread.
#ifndef LOCKSTEP_TESTS_CONTRACTS_STEP_MATH_CONTRACT_H_
#define LOCKSTEP_TESTS_CONTRACTS_STEP_MATH_CONTRACT_H_

#include "worker/device/device.h"

namespace lockstep {

// Each asserts with Catch2, on flat runs of tensors of many sizes, none of them a round number, with gaps between them.
void CheckExactSums(device::Device& device);
void CheckFloatSums(device::Device& device);
void CheckClip(device::Device& device);
void CheckUpdates(device::Device& device);
void CheckOrderOfNorms(device::Device& device);
void CheckOrderOfMeans(device::Device& device);
void CheckStatisticsAndOutputs(device::Device& device);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_STEP_MATH_CONTRACT_H_
