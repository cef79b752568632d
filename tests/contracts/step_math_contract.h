// What every device promises about the arithmetic of a step: bit for bit what the functions for host memory give.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_TESTS_CONTRACTS_STEP_MATH_CONTRACT_H_
#define LOCKSTEP_TESTS_CONTRACTS_STEP_MATH_CONTRACT_H_

#include "worker/device/device.h"

namespace lockstep {

// Assert with Catch2. Runs of tensors of many sizes, none of them a multiple of anything, with gaps between.
void CheckExactSums(device::Device& device);
void CheckFloatSums(device::Device& device);
void CheckClip(device::Device& device);
void CheckUpdates(device::Device& device);
void CheckStatisticsAndOutputs(device::Device& device);

}  // namespace lockstep

#endif  // LOCKSTEP_TESTS_CONTRACTS_STEP_MATH_CONTRACT_H_
