// Finds the fastest of several kernels for a node by running them on scratch memory. Equal nodes share one trial, so
// that equal layers of a model get the same kernel.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_CUDA_KERNEL_TRIALS_H_
#define LOCKSTEP_WORKER_DEVICE_CUDA_KERNEL_TRIALS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"
#include "worker/device/cuda/runtime/cuda_stream.h"
#include "worker/device/kernel.h"

namespace lockstep::device::cuda {

// The index of the kernel to take: an earlier one unless a later one is faster by a margin, so that noise does not
// decide between equals. Negative times stand for excluded kernels; 0 when all are excluded.
size_t FastestOf(absl::Span<const float> milliseconds);

bool SameLayouts(const KernelRequest& request, const Kernel& a, const Kernel& b);

class KernelTrials {
 public:
  explicit KernelTrials(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  // The earlier choice of Fastest for an equal node; empty when there was none.
  std::string Known(const KernelRequest& request) const;

  // Returns the name of the kernel to take; the first one when there is not enough memory for trials. Excludes kernels
  // that fail, that do not repeat bit for bit, or, where layouts allow a comparison, whose results differ from those of
  // `definition` by more than rounding; the request's remark names them. When all are excluded it takes `definition`,
  // which may be null. Blocks. REQUIRES: at least one kernel.
  std::string Fastest(const KernelRequest& request, absl::Span<const std::unique_ptr<Kernel>> kernels,
                      Kernel* definition);

 private:
  struct Choice {
    Node node;
    Epilogue epilogue;
    std::vector<Operand> inputs;
    std::vector<Operand> outputs;
    std::string implementation;
  };

  const Choice* Find(const KernelRequest& request) const;

  const std::shared_ptr<MemoryBudget> budget_;
  std::vector<Choice> choices_;
};

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_DEVICE_CUDA_KERNEL_TRIALS_H_
