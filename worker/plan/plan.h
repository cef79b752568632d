// Stage 3's result: a graph made ready to run on one device. Kernels are chosen and bound, every value has its place in
// one arena, buckets of gradients among them, and a pass allocates nothing and cannot fail for a reason that was
// knowable. Everything that can fail (an op that no kernel serves, a kernel plan that this machine cannot run, memory
// that does not suffice) fails in Draft and Bind, with a message that names the node and says what to change.
//
//   Draft ─> Bind ─> RefreshVariables ─> RunPass ─> ... ─> RunPass ─> (update by the owner) ─> RefreshVariables ─> ...
//     ▲                                     │
//     └───────────────── Release ◀──────────┘
//
// Make is Draft and Bind in one. A draft has chosen and laid out everything and holds no memory: what the plan will
// take is read from it. Release makes a plan a draft again, with the choices, counters and cancellation that it had.
//
// Invariants
//   * The graph, the kind of device and whether gradients are kept decide the order of nodes, gradients and buckets:
//     equal on every worker.
//   * A pass writes into the plan's own memory only, never into a variable.
//   * The same inputs, variables and key give the same bits in every pass.
// Threading: owned by the device's owner thread; nodes_executed and Cancel may be used from any thread.
#ifndef LOCKSTEP_WORKER_PLAN_PLAN_H_
#define LOCKSTEP_WORKER_PLAN_PLAN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/graph/ops/ir.h"
#include "common/sync/pulse.h"
#include "common/tensor/poison.h"
#include "worker/arithmetic/bucketer.h"
#include "worker/device/device.h"
#include "worker/device/kernel.h"

namespace lockstep::worker {

// Node -> implementation, as a kernel plan stores them; see kernel_plan.h.
using KernelChoices = std::map<std::string, std::string>;

// What of the forward pass is computed again in the backward pass instead of being kept. Bits do not depend on it.
enum class Recomputation : uint8_t {
  kNone,
  kCheap,   // what takes little more time than copying it, where it lowers the peak
  kBlocks,  // and all within blocks of the model: nearly a second forward pass
};

struct PlanOptions {
  // Begins every key in KernelChoices: "training", "evaluation".
  std::string label = "training";
  // Gradients are reduced in buckets of at least this size.
  int64_t bucket_bytes = 1 << 20;
  // Gradients of pass 1, 2, ... are added to those of pass 0 (several passes make one logical shard).
  bool accumulate_passes = false;
  // A pass's gradients stay until the next begins; else a bucket's memory is used again once on_bucket has returned for
  // it. Sums over passes stay in any case.
  bool keep_gradients = true;
  // Node fusions and the device's own layouts. Both change bits: they stand in the kernel plan.
  bool fuse = true;
  bool free_layouts = true;
  Recomputation recompute = Recomputation::kCheap;
  // From a kernel plan; null: the device's own tables choose.
  const KernelChoices* choices = nullptr;
  // Without choices: the device may try kernels out and take the fastest, so that equal machines may choose otherwise.
  bool trials = false;
  // Advances with every node that is prepared or run, as long as the plan lives; null: nobody watches.
  Pulse* pulse = nullptr;
  // Memory holds what no value is before a pass writes it, so that a read that comes too early shows (poison.h).
  bool poison = kPoisonsMemory;
};

// What a pass reads for one input: all of its bytes.
using InputBytes = absl::Span<const std::byte>;

// What randomness in a pass depends on.
struct PassKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t logical_shard = 0;
  int64_t pass = 0;
};

// Device memory of a plan, by use, in bytes.
struct PlanMemory {
  int64_t arena = 0;       // inputs, values, gradients and the kernels' scratch, shared over their lifetimes
  int64_t gradients = 0;   // sums over passes
  int64_t persistent = 0;  // constants, outputs, blocked copies of variables
  int64_t total() const { return arena + gradients + persistent; }
};

// What shares the arena when most of it is in use.
struct PlanPeak {
  struct Part {
    std::string name;  // of the value; "scratch of <node>"
    int64_t bytes = 0;
  };
  std::string node;         // during which that is
  std::vector<Part> parts;  // largest first
  int64_t lower_bound = 0;  // their sum: no arena can be smaller
};

// One step of a pass, in words.
struct PlannedStep {
  std::string text;  // "<node> <op> <implementation>", or which value changes its layout or is copied
  std::string node;  // of the graph, with what is fused: "conv1+relu1"; empty for layouts and copies, as below
  std::string op;
  std::string implementation;  // Kernel::implementation
  // What the device prefers to that implementation for such ops, and why it does not serve the node.
  std::vector<device::Refusal> refusals;
  friend bool operator==(const PlannedStep&, const PlannedStep&) = default;
};

struct NodeDigest {
  std::string node;    // "<node>:<output index>"
  std::string sha256;  // 64 lower-case hex digits, over the value's bytes in the plan's layout
};

class Plan {
 public:
  using BucketReady = absl::FunctionRef<absl::Status(int bucket)>;

  // Plans `graph` (shapes inferred) without taking memory. `device` outlives the plan.
  static absl::StatusOr<std::unique_ptr<Plan>> Draft(device::Device* device, const Graph& graph,
                                                     const PlanOptions& options);
  // Takes the plan's memory. `variables` holds the device address of every variable of the graph, row-major; they stay
  // valid as long as the plan. What runs passes or reaches gradients needs this first. REQUIRES: it is a draft. After
  // an error it is one again.
  absl::Status Bind(const std::map<std::string, std::byte*>& variables);
  // Gives the plan's memory back; waits for what is queued. Its addresses are void.
  void Release();
  // Both.
  static absl::StatusOr<std::unique_ptr<Plan>> Make(device::Device* device, const Graph& graph,
                                                    const std::map<std::string, std::byte*>& variables,
                                                    const PlanOptions& options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // The inputs that RunPass takes, in the order of the graph, without kRandomInput, which the plan fills itself.
  const std::vector<TensorSpec>& inputs() const;
  // The outputs in the order of the graph.
  const std::vector<TensorSpec>& outputs() const;
  // Index into outputs(), or -1.
  int FindOutput(absl::string_view name) const;

  // How gradients lie in buckets, and the parameter of each of the layout's tensors.
  const GradientLayout& gradient_layout() const;
  const std::vector<std::string>& gradient_parameters() const;
  // The device address of a bucket: its tensors lie there as the layout says, what is between them is undefined. There
  // from on_bucket until it returns, or until the next pass where gradients are kept.
  std::byte* bucket_address(int bucket) const;
  bool keeps_gradients() const;

  // Queues what has to follow every change of a variable (blocked copies of weights). Call it before the first pass and
  // after every update, restore or transfer.
  absl::Status RefreshVariables();

  // Queues one forward (and backward) pass. `inputs` are host memory in the order of inputs(); they must stay unchanged
  // until WaitForInputs, Synchronize or an event recorded behind the pass. `on_bucket` is called on this
  // thread, in bucket order, as soon as the bucket's gradients of this pass are queued; a failure of it ends the pass
  // and is returned. Without keep_gradients, what reads the bucket is queued in the plan's stream or done when it
  // returns. Internal, with nothing queued, unless every input is fed with exactly its bytes. Cancelled after
  // Cancel(true). After an error nothing of the pass is under way any more.
  absl::Status RunPass(absl::Span<const InputBytes> inputs, const PassKey& key, BucketReady on_bucket);
  absl::Status RunPass(absl::Span<const InputBytes> inputs, const PassKey& key);
  // The same with inputs in device memory, there when the stream comes to them, and unchanged until the pass has taken
  // them.
  absl::Status RunPassOnDevice(absl::Span<const InputBytes> inputs, const PassKey& key, BucketReady on_bucket);

  // Runs the pass node by node, and returns a digest of every node's output. Blocks.
  absl::StatusOr<std::vector<NodeDigest>> RunPassWithDigests(absl::Span<const InputBytes> inputs, const PassKey& key,
                                                             BucketReady on_bucket);
  absl::StatusOr<std::vector<NodeDigest>> RunPassWithDigests(absl::Span<const InputBytes> inputs, const PassKey& key);

  // The longest that one node took in the last RunPassWithDigests, in its own time: waits for a stopping replica have
  // to outlast it.
  absl::Duration longest_node() const;

  // Blocks until the last pass has taken its inputs over; returns the first failure.
  absl::Status WaitForInputs();
  // The mark of that in the stream: for work that replaces them.
  device::Event& inputs_taken();
  // Blocks until all that was queued is done; returns the first failure.
  absl::Status Synchronize();
  device::Stream& stream();

  // The device address of one output, there until the next pass. REQUIRES: a gradient is kept.
  const std::byte* output_address(int output) const;
  // Waits for the pass and copies outputs of it. REQUIRES: to.size() is the output's size; a gradient is kept.
  struct OutputRead {
    int output = 0;
    absl::Span<std::byte> to;
  };
  absl::Status ReadOutputs(absl::Span<const OutputRead> reads);
  absl::Status ReadOutput(int output, absl::Span<std::byte> to) { return ReadOutputs({{output, to}}); }

  // PlanOptions::pulse.
  Pulse* pulse() const;
  // Nodes launched since Make, over all passes: progress, from any thread.
  uint64_t nodes_executed() const;
  // While true, passes end with Cancelled before their next node. From any thread.
  void Cancel(bool cancel);

  const PlanMemory& memory() const;
  PlanPeak Peak() const;
  // What the device chose, under the keys of a kernel plan.
  const KernelChoices& choices() const;
  // The steps in order. "once per step: " begins the text of those that follow an update, "again: " that of those that
  // compute what an earlier one has computed.
  std::vector<PlannedStep> Describe() const;

 private:
  struct State;
  explicit Plan(std::unique_ptr<State> state);
  friend class PlanBuilder;

  std::unique_ptr<State> state_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PLAN_H_
