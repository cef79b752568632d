// BF16 for devices and ops that have no kernel of their own for it: the inputs are widened to F32 in the workspace, the
// device's kernel for F32 runs, its results are rounded. This is what BF16 means (common/graph/ops/wide_operands.h), so
// that kernels which do it in one pass are compared with this one.
//
// Threading: as kernel.h.
#ifndef LOCKSTEP_WORKER_DEVICE_WIDENED_KERNEL_H_
#define LOCKSTEP_WORKER_DEVICE_WIDENED_KERNEL_H_

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/device/kernel.h"

namespace lockstep::device {

// In front of the name of the kernel for F32.
inline constexpr char kWidened[] = "widened:";

// Whether an operand is BF16, and the op is not the Cast that makes or reads such a value.
bool ComputesBf16(const KernelRequest& request);

// `make` makes kernels of the device, for Casts between F32 and BF16 and for F32; its errors are passed on. The request
// may name the kernel in a plan, kWidened in front. Operands are row-major.
absl::StatusOr<std::unique_ptr<Kernel>> MakeWidenedKernel(
    const KernelRequest& request,
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Kernel>>(const KernelRequest&)> make);

}  // namespace lockstep::device

#endif  // LOCKSTEP_WORKER_DEVICE_WIDENED_KERNEL_H_
