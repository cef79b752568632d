// What a machine has to compute with, as the lines of `lockstep check`.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_DEPLOY_CLI_MACHINE_H_
#define LOCKSTEP_DEPLOY_CLI_MACHINE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/cuda/library.h"
#include "worker/device/device.h"

namespace lockstep::cli {

// One line: `ok` or `warn`, about what, and what was found.
struct Finding {
  bool ok = true;
  std::string what;
  std::string text;
};

// The CPU, then one line for the driver, the toolkit, every GPU and NCCL, or a single one that says why there is
// nothing to use. `needs_gpu`: that there is none is worth a warning.
std::vector<Finding> DescribeMachine(const device::DeviceInfo& cpu, const absl::StatusOr<device::CudaReport>& cuda,
                                     bool needs_gpu);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MACHINE_H_
