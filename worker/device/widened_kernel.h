// BF16 for devices and ops without a BF16 kernel: widens the inputs to F32 in the workspace, runs the device's F32
// kernel and rounds its results. This defines the semantics of BF16 (common/graph/ops/wide_operands.h); kernels that
// work in one pass are tested against it.
//
// Threading: kernels are owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_DEVICE_WIDENED_KERNEL_H_
#define LOCKSTEP_WORKER_DEVICE_WIDENED_KERNEL_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/device/kernel.h"

namespace lockstep::device {

// The prefix of the F32 kernel's name.
inline constexpr char kWidened[] = "widened:";

// Whether an operand is BF16 and the op is not a Cast from or to BF16.
bool ComputesBf16(const KernelRequest& request);

// `make` makes the device's kernels: the casts between F32 and BF16, and the F32 kernel; its errors are returned. The
// request may name an implementation, with the prefix kWidened. Operands are row-major.
absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(
    const KernelRequest& request,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelRequest&)> make);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_WIDENED_KERNEL_H_
