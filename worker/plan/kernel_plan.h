// What could differ between machines and decides bits: the kernel library, the instruction set, threads, fusions, and
// the implementation of every node, with the digests of a probe that was computed with them. Made once per job by one
// worker and replayed by everybody else: from fixed tables, so that equal machines make equal plans, or, where a device
// and the job's `numerics.tuned` allow it, by trying out what is fastest.
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

// The kernel plan of plans that were made without one, with the options they were made with. `probe` is left empty.
KernelPlan DescribeKernels(const device::DeviceInfo& device, const PlanOptions& options,
                           absl::Span<const Plan* const> plans);

// The same plan gives the same bytes.
std::string SerializeKernelPlan(const KernelPlan& plan);

// DataLoss when the bytes are no kernel plan, FailedPrecondition when they are of a newer version.
absl::StatusOr<KernelPlan> ParseKernelPlan(absl::string_view bytes);

// SHA-256 of the bytes: 64 lower-case hex digits. The plan's name.
std::string KernelPlanHash(absl::string_view bytes);

// OK when a device can replay the plan; else FailedPrecondition, saying what differs and what to do. It is not enough
// that it passes: the probe decides.
absl::Status CheckKernelPlan(const KernelPlan& plan, const device::DeviceInfo& device);

// What to make the device of a job with: the job's threads, and the plan's instruction set when there is a plan.
device::DeviceOptions DeviceOptionsFor(int threads, const KernelPlan* plan);

// Sets what `plan` says in the options for Plan::Make. REQUIRES: `plan` outlives the options.
void ApplyKernelPlan(const KernelPlan& plan, PlanOptions* options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_KERNEL_PLAN_H_
