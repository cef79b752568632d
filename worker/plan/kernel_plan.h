// The kernel plan of a job: all choices that decide bits and could differ between machines (kernel library, instruction
// set, threads, fusions, the implementation of every node), and the digests of a probe computed with them. One worker
// makes it once per job and all others replay it. It is made from fixed tables, so that equal machines make equal
// plans, or, if the device and the job's `numerics.tuned` allow it, by timing kernels.
//
//   make:   MakeDevice ─> Plan::Make (no choices) ─> DescribeKernels ─> RunProbe ─> SerializeKernelPlan
//   replay: ParseKernelPlan ─> MakeDevice (its instruction set) ─> CheckKernelPlan ─> Plan::Make (its choices)
//           ─> RunProbe ─> CompareProbes
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_PLAN_KERNEL_PLAN_H_
#define LOCKSTEP_WORKER_PLAN_KERNEL_PLAN_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/device/device.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

struct KernelPlan {
  std::string device;
  std::string library;
  std::string instruction_set;
  int threads = 1;
  bool tf32 = false;
  bool fuse = true;
  bool free_layouts = true;
  KernelChoices choices;
  std::vector<NodeDigest> probe;
};

// The kernel plan for plans that were made without one, from their choices and options. `probe` is left empty.
KernelPlan DescribeKernels(const device::DeviceInfo& device, const PlanOptions& options,
                           absl::Span<const Plan* const> plans);

// Equal plans give equal bytes.
std::string SerializeKernelPlan(const KernelPlan& plan);

// DataLoss when the bytes are not a kernel plan, FailedPrecondition when they are of a newer version.
absl::StatusOr<KernelPlan> ParseKernelPlan(absl::string_view bytes);

// SHA-256 of the bytes: 64 lower-case hex digits. The plan's name.
std::string KernelPlanHash(absl::string_view bytes);

// OK when a device can replay the plan; else FailedPrecondition with the difference and a remedy. Necessary but not
// sufficient: the probe decides.
absl::Status CheckKernelPlan(const KernelPlan& plan, const device::DeviceInfo& device);

// The options for making a job's device: the job's threads, and the plan's instruction set if there is a plan.
device::DeviceOptions DeviceOptionsFor(int threads, const KernelPlan* plan);

// Sets the choices of `plan` in the options for Plan::Make. REQUIRES: `plan` outlives the options.
void ApplyKernelPlan(const KernelPlan& plan, PlanOptions* options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_KERNEL_PLAN_H_
