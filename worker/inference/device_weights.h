// The variables of a trained model in the memory of a device, to be read by plans.
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

// The elements of a variable, with its type and shape.
using ReadVariable = std::function<absl::StatusOr<Tensor>(const Variable& variable)>;

class DeviceWeights {
 public:
  // Reads `variables` one after another and copies each to the device, which outlives the weights. Blocks. Errors of
  // `read`; ResourceExhausted when the device's memory does not suffice.
  static absl::StatusOr<DeviceWeights> Load(device::Device& device, absl::Span<const Variable> variables,
                                            const ReadVariable& read);

  // Row-major, by the variable's name: what Plan::Bind takes.
  const std::map<std::string, std::byte*>& addresses() const { return addresses_; }

 private:
  DeviceWeights() = default;

  std::vector<std::unique_ptr<device::Buffer>> buffers_;
  std::map<std::string, std::byte*> addresses_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_DEVICE_WEIGHTS_H_
