// Brings the inputs of a plan's next pass to a device whose memory the host cannot touch, while the pass before is
// computed: copied in a stream of their own into memory of their own, from where the pass takes them when it begins.
//
//   copies    Copy(p+1) ── waits until pass p has taken its inputs ──▶ copied ─┐
//   compute   ... pass p ........................................ pass p+1 ◀───┘ takes them, then they may be replaced
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_PLAN_INPUT_STAGING_H_
#define LOCKSTEP_WORKER_PLAN_INPUT_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/device/device.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

class InputStaging {
 public:
  // For passes of `plan`, which is bound and outlives this. ResourceExhausted when memory does not suffice.
  static absl::StatusOr<std::unique_ptr<InputStaging>> Make(device::Device& device, Plan& plan);
  // Waits for what is queued.
  ~InputStaging();
  // Device memory that it takes.
  static int64_t BytesOf(const Plan& plan);

  // Queues the copies of a pass's inputs, host memory in the order of Plan::inputs, behind the newest pass's taking of
  // its own. They must stay unchanged until WaitForCopies. Internal unless every input is fed with exactly its bytes.
  absl::Status Copy(absl::Span<const InputBytes> inputs);
  // Where the newest Copy goes, for Plan::RunPassOnDevice: work queued in the plan's stream from now on finds it there.
  absl::StatusOr<absl::Span<const InputBytes>> Use();
  // Blocks until what was copied from may change; returns the first failure.
  absl::Status WaitForCopies();

 private:
  explicit InputStaging(Plan& plan) : plan_(plan) {}

  Plan& plan_;
  std::unique_ptr<device::Buffer> memory_;  // of all inputs
  std::vector<std::byte*> addresses_;       // per input, in it
  std::vector<InputBytes> inputs_;          // the same with their sizes
  std::unique_ptr<device::Stream> stream_;  // of the copies
  std::unique_ptr<device::Event> copied_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_INPUT_STAGING_H_
