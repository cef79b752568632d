// The result of stage 3: a graph prepared to run on one device. Kernels are chosen and bound, and every value has its
// place in one arena, gradient buckets included. A pass allocates nothing and cannot fail for a reason that could be
// found earlier: an op without a kernel, a kernel plan that this machine cannot run, and lack of memory are errors of
// Draft and Bind, with a message that names the node and a remedy.
//
//   Draft ─> Bind ─> RefreshVariables ─> RunPass ─> ... ─> RunPass ─> (update by the owner) ─> RefreshVariables ─> ...
//     ▲                                     │
//     └───────────────── Release ◀──────────┘
//
// Make is Draft and Bind in one. A draft has made all choices and the memory layout but holds no memory; it tells how
// much the plan will need. Release turns a plan back into a draft with the same choices, counters and cancellation.
//
// Invariants
//   * The order of nodes, gradients and buckets depends only on the graph, the kind of device and GradientMemory, and
//     is therefore the same on every worker.
//   * A pass writes only to the plan's own memory, never to a variable.
//   * The same inputs, variables and key give the same bits in every pass.
//
// Threading: owned by the device's owner thread; nodes_executed and Cancel are thread-safe.
#ifndef LOCKSTEP_WORKER_PLAN_PLAN_H_
#define LOCKSTEP_WORKER_PLAN_PLAN_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
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

// Node -> implementation name, as stored in a kernel plan (kernel_plan.h).
using KernelChoices = std::map<std::string, std::string>;

// Which results of the forward pass are recomputed in the backward pass instead of being kept (activation
// checkpointing). Bits do not depend on it.
enum class Recomputation : uint8_t {
  kNone,
  kCheap,   // results that cost little more time than a copy, where this lowers the peak memory
  kBlocks,  // kCheap, and everything within blocks of the model: nearly a second forward pass
};

// Where a pass leaves its gradients, and how long they are valid. Sums over several passes lie as with kApart.
enum class GradientMemory : uint8_t {
  kUntilRead,      // in the arena, until on_bucket has returned for the bucket
  kUntilNextPass,  // in the arena, until the next pass begins
  kApart,          // outside the arena, until the next pass begins
};

struct PlanOptions {
  // The prefix of all keys in KernelChoices: "training", "evaluation".
  std::string label = "training";
  // The minimum size of a gradient bucket.
  int64_t bucket_bytes = 1 << 20;
  // Gradients of passes 1, 2, ... are added to those of pass 0: a logical shard has several passes (micro-batches).
  bool accumulate_passes = false;
  GradientMemory gradients = GradientMemory::kUntilNextPass;
  // Whether to fuse nodes and to use the device's own layouts. Both change bits and are part of the kernel plan.
  bool fuse = true;
  bool free_layouts = true;
  Recomputation recompute = Recomputation::kCheap;
  // From a kernel plan; null: the device chooses by its own tables.
  const KernelChoices* choices = nullptr;
  // Without `choices`: the device may time kernels and take the fastest, so that equal machines may choose differently.
  bool trials = false;
  // Advances with every node that is prepared or run, as long as the plan lives; may be null.
  Pulse* pulse = nullptr;
  // Poisons memory before a pass writes it, so that a premature read is noticed (poison.h).
  bool poison = kPoisonsMemory;
};

// All bytes of one input of a pass.
using InputBytes = absl::Span<const std::byte>;

// The key of random numbers in a pass.
struct PassKey {
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t logical_shard = 0;
  int64_t pass = 0;
};

// The device memory of a plan by use, in bytes.
struct PlanMemory {
  int64_t arena = 0;       // inputs, values, gradients and scratch, which share bytes by lifetime
  int64_t gradients = 0;   // sums over passes, or gradients with GradientMemory::kApart
  int64_t persistent = 0;  // constants, outputs, copies of variables in other layouts
  int64_t total() const { return arena + gradients + persistent; }
};

// The contents of the arena at its peak.
struct PlanPeak {
  struct Part {
    std::string name;  // of the value; "scratch of <node>"
    int64_t bytes = 0;
  };
  std::string node;         // the node that runs at the peak
  std::vector<Part> parts;  // largest first
  int64_t lower_bound = 0;  // the sum of the parts: no arena can be smaller
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
  using Allocator = std::function<absl::StatusOr<std::unique_ptr<device::Buffer>>(size_t bytes)>;

  // Plans `graph`, whose shapes are inferred, without taking memory. `device` outlives the plan.
  static absl::StatusOr<std::unique_ptr<Plan>> Draft(device::Device* device, const Graph& graph,
                                                     const PlanOptions& options);
  // Allocates the plan's memory; needed before passes and access to gradients. `variables` holds the device address of
  // every variable of the graph, row-major; they outlive the plan. `for_gradients` allocates what lies outside the
  // arena (PlanMemory::gradients), zeroed, for the device; null: the device does. ResourceExhausted when memory is
  // exhausted. After an error the plan is still a draft. REQUIRES: the plan is a draft.
  absl::Status Bind(const std::map<std::string, std::byte*>& variables, const Allocator& for_gradients = nullptr);
  // Frees the plan's memory after waiting for queued work. Addresses that it returned become invalid.
  void Release();
  // Draft and Bind.
  static absl::StatusOr<std::unique_ptr<Plan>> Make(device::Device* device, const Graph& graph,
                                                    const std::map<std::string, std::byte*>& variables,
                                                    const PlanOptions& options);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  // The inputs of RunPass, in the order of the graph, without kRandomInput, which the plan fills itself.
  const std::vector<TensorSpec>& inputs() const;
  // The outputs in the order of the graph.
  const std::vector<TensorSpec>& outputs() const;
  // The index into outputs(), or -1.
  int FindOutput(absl::string_view name) const;

  // The layout of gradients in buckets, and the parameter of each tensor of the layout.
  const GradientLayout& gradient_layout() const;
  const std::vector<std::string>& gradient_parameters() const;
  // The device address of a bucket, with tensors placed by the layout and undefined padding between them. Valid during
  // on_bucket, or if keeps_gradients until the next pass.
  std::byte* bucket_address(int bucket) const;
  bool keeps_gradients() const;

  // Queues the work that must follow every change of variables (copies of weights in other layouts). Call it before the
  // first pass and after every update, restore or transfer.
  absl::Status RefreshVariables();

  // Queues one forward (and backward) pass. `inputs` are in host memory, in the order of inputs(), and must stay
  // unchanged until WaitForInputs, Synchronize or an event recorded after the pass. `on_bucket` is called on this
  // thread, in bucket order, as soon as the bucket's gradients of this pass are queued; its failure ends the pass and
  // is returned. Unless keeps_gradients, on_bucket must queue all reads of the bucket in the plan's stream or finish
  // them before it returns. Internal, with nothing queued, unless every input has exactly its bytes. Cancelled after
  // Cancel(true). After an error no work of the pass is in flight.
  absl::Status RunPass(absl::Span<const InputBytes> inputs, const PassKey& key, BucketReady on_bucket);
  absl::Status RunPass(absl::Span<const InputBytes> inputs, const PassKey& key);
  // The same with inputs in device memory, which must be complete when the stream reaches the pass, and unchanged until
  // inputs_taken().
  absl::Status RunPassOnDevice(absl::Span<const InputBytes> inputs, const PassKey& key, BucketReady on_bucket);

  // Runs the pass node by node and returns a digest of every node's output. Blocks.
  absl::StatusOr<std::vector<NodeDigest>> RunPassWithDigests(absl::Span<const InputBytes> inputs, const PassKey& key,
                                                             BucketReady on_bucket);
  absl::StatusOr<std::vector<NodeDigest>> RunPassWithDigests(absl::Span<const InputBytes> inputs, const PassKey& key);

  // The longest run time of one node in the last RunPassWithDigests. Timeouts for stopping a replica must exceed it.
  absl::Duration longest_node() const;

  // Blocks until the last pass has taken its inputs; returns the first failure.
  absl::Status WaitForInputs();
  // The event in the stream at which the last pass has taken its inputs.
  device::Event& inputs_taken();
  // Blocks until all queued work is done; returns the first failure.
  absl::Status Synchronize();
  device::Stream& stream();

  // The device address of one output, valid until the next pass. REQUIRES: an output that is a gradient is kept.
  const std::byte* output_address(int output) const;
  // Blocks until the pass is done and copies outputs of it. REQUIRES: to.size() is the output's size in bytes; an
  // output that is a gradient is kept.
  struct OutputRead {
    int output = 0;
    absl::Span<std::byte> to;
  };
  absl::Status ReadOutputs(absl::Span<const OutputRead> reads);
  absl::Status ReadOutput(int output, absl::Span<std::byte> to) { return ReadOutputs({{output, to}}); }

  // PlanOptions::pulse.
  Pulse* pulse() const;
  // The number of nodes launched over all passes, as a measure of progress. Thread-safe.
  uint64_t nodes_executed() const;
  // While true, passes end with Cancelled before their next node. Thread-safe.
  void Cancel(bool cancel);

  const PlanMemory& memory() const;
  PlanPeak Peak() const;
  // The implementations that the device chose, under the keys of a kernel plan.
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
