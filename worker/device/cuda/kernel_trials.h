// Which of several kernels serves a node fastest, found by running them in memory of their own. Asked once for nodes
// that are alike, so that the layers of a model do not choose differently and cost one trial.
//
// Threading: as device.h.
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

// The index of what to take: an earlier one unless a later one is faster by a margin, so that noise does not choose
// between equals. 0 where all are absent. REQUIRES: absent ones are negative.
size_t FastestOf(absl::Span<const float> milliseconds);

bool SameLayouts(const KernelRequest& request, const Kernel& a, const Kernel& b);

class KernelTrials {
 public:
  explicit KernelTrials(std::shared_ptr<MemoryBudget> budget) : budget_(std::move(budget)) {}

  // What Fastest chose for a node like this one; empty where it was not asked.
  std::string Known(const KernelRequest& request) const;

  // The name of the kernel to take, of at least one. The first where there is no memory to try them in. Left out is one
  // that fails, that gives other bits when it runs again, or whose results are not those of `definition`, as far as
  // rounding goes and where it takes the same layouts; the request's remark names those. Where all are left out:
  // `definition`, which may be null.
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
