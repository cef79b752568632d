// The compute devices of a machine, as the lines of `lockstep check`.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_DEPLOY_CLI_MACHINE_H_
#define LOCKSTEP_DEPLOY_CLI_MACHINE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/job/findings.h"
#include "worker/cuda_library/library.h"
#include "worker/device/device.h"

namespace lockstep::cli {

// A line for the CPU, then one each for the driver, the toolkit, every GPU and NCCL, or a single one that says why no
// GPU is usable. `needs_gpu`: a missing GPU is a warning.
std::vector<Finding> DescribeMachine(const device::DeviceInfo& cpu, const absl::StatusOr<device::CudaReport>& cuda,
                                     bool needs_gpu);

// Adds the lines of this machine.
void AddMachine(bool needs_gpu, Findings& findings);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MACHINE_H_
