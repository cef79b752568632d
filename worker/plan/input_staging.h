// Copies the inputs of a plan's next pass to a device while the current pass is computed. The copies run in a stream of
// their own, into a staging buffer, from which the pass takes them when it begins. For devices whose memory the host
// cannot access.
//
//   copies    Copy(p+1) ── waits until pass p has taken its inputs ──▶ copied ─┐
//   compute   ... pass p ........................................ pass p+1 ◀───┘ takes them; they may be replaced
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
  // `plan` is bound and outlives this object. ResourceExhausted when device memory is exhausted.
  static absl::StatusOr<std::unique_ptr<InputStaging>> Make(device::Device& device, Plan& plan);
  // Waits for the queued copies.
  ~InputStaging();
  // The device memory in bytes that it takes.
  static int64_t BytesOf(const Plan& plan);

  // Queues the copies of a pass's inputs from host memory, in the order of Plan::inputs; they wait on the device until
  // the last queued pass has taken its own inputs. The host memory must stay unchanged until WaitForCopies returns.
  // Internal unless every input has exactly its bytes.
  absl::Status Copy(absl::Span<const InputBytes> inputs);
  // The device memory of the latest Copy, for Plan::RunPassOnDevice. Makes the plan's stream wait for the copies.
  absl::StatusOr<absl::Span<const InputBytes>> Use();
  // Blocks until the host memory of the latest Copy may change; returns the first failure.
  absl::Status WaitForCopies();

 private:
  explicit InputStaging(Plan& plan) : plan_(plan) {}

  Plan& plan_;
  std::unique_ptr<device::Buffer> memory_;  // for all inputs
  std::vector<std::byte*> addresses_;       // per input, in memory_
  std::vector<InputBytes> inputs_;          // addresses_ with sizes
  std::unique_ptr<device::Stream> stream_;  // of the copies
  std::unique_ptr<device::Event> copied_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_INPUT_STAGING_H_
