// The variables of a trained model in device memory, to be read by plans.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_INFERENCE_DEVICE_WEIGHTS_H_
#define LOCKSTEP_WORKER_INFERENCE_DEVICE_WEIGHTS_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Reads the value of a variable; the tensor has the variable's type and shape.
using ReadVariable = std::function<absl::StatusOr<Tensor>(const Variable& variable)>;

class DeviceWeights {
 public:
  // Reads `variables` one at a time and copies each to the device, which outlives the weights. Blocks. Errors of
  // `read`; ResourceExhausted when device memory is exhausted.
  static absl::StatusOr<DeviceWeights> Load(device::Device& device, absl::Span<const Variable> variables,
                                            const ReadVariable& read);

  // Device addresses by variable name, for Plan::Bind. Values are row-major.
  const std::map<std::string, std::byte*>& addresses() const { return addresses_; }

 private:
  DeviceWeights() = default;

  std::vector<std::unique_ptr<device::Buffer>> buffers_;
  std::map<std::string, std::byte*> addresses_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_DEVICE_WEIGHTS_H_
