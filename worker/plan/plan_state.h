// The parts of a plan, shared by the code that makes plans and the code that runs them.
//
// Threading: owned by the device's owner thread; the atomic members are thread-safe.
#ifndef LOCKSTEP_WORKER_PLAN_PLAN_STATE_H_
#define LOCKSTEP_WORKER_PLAN_PLAN_STATE_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "worker/plan/plan.h"

namespace lockstep::worker {

// The memory of a value. Several values may share one storage: views of another shape, and in-place results.
struct PlanStorage {
  enum class Home : uint8_t {
    kArena,       // shared with values of other lifetimes
    kVariable,    // memory of the caller of Bind, never written
    kPersistent,  // constants, outputs, copies of variables in other layouts
    kGradient,    // within the storage of its bucket
    kApart,       // a bucket that lies outside the arena
  };
  Home home = Home::kArena;
  int64_t bytes = 0;
  int first = 0;  // alive during steps [first, last], inclusive
  int last = 0;
  int64_t offset = 0;  // within its home; kVariable: none
  int bucket = -1;     // kGradient: index of the bucket's storage
  std::byte* address = nullptr;
};

struct PlanValue {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  device::Layout layout;
  int storage = -1;
};

// One kernel launch, or a plain copy where `kernel` is null. Values are indices, -1 where absent.
struct PlanStep {
  std::string node;
  PlannedStep description;
  std::unique_ptr<device::Kernel> kernel;
  std::vector<int> inputs;
  std::vector<int> outputs;
  int workspace = -1;        // storage of the kernel's scratch
  bool again = false;        // recomputes the results of an earlier step
  bool of_variable = false;  // converts a variable to another layout: no result of the pass
  // After this step all buckets below this number are complete.
  int buckets_ready = 0;
};

// Steps [first, last), which end where a bucket is ready or the pass ends, and their recording.
struct PlanSegment {
  size_t first = 0;
  size_t last = 0;
  std::unique_ptr<device::Recording> recording;
  bool stepwise = false;  // recording failed: run step by step
};

// The copy of one input at the start of a pass.
struct PlanInputCopy {
  std::byte* address = nullptr;
  size_t bytes = 0;
};

// The size of kRandomInput.
inline constexpr size_t kRandomBytes = 4 * sizeof(int64_t);

struct Plan::State {
  device::Device* device = nullptr;
  std::unique_ptr<device::Stream> stream;

  std::vector<TensorSpec> inputs;
  std::vector<int> input_values;            // parallel to `inputs`
  std::vector<PlanInputCopy> input_copies;  // parallel to `inputs`
  int random_value = -1;                    // kRandomInput, -1 when the graph has none
  std::byte* random = nullptr;              // its device address
  std::unique_ptr<device::Event> inputs_taken;
  std::unique_ptr<device::Buffer> random_staging;  // host memory from which kRandomInput is copied

  std::vector<TensorSpec> outputs;
  std::vector<int> output_values;  // parallel to `outputs`

  std::vector<std::pair<std::string, int>> variables;  // name, value
  std::vector<std::pair<int, std::shared_ptr<const Tensor>>> constants;

  std::vector<PlanStorage> storages;
  std::vector<PlanValue> values;
  std::vector<PlanStep> refresh;
  std::vector<PlanStep> steps;
  // If the stream can record: the segments that passes replay. The second pass records them, after one warm-up.
  std::vector<PlanSegment> segments;
  bool ran_once = false;

  std::optional<GradientLayout> gradient_layout;
  std::vector<std::string> gradient_parameters;
  std::vector<int> bucket_storages;  // of a pass
  bool accumulate_passes = false;
  GradientMemory gradient_memory = GradientMemory::kUntilNextPass;
  bool poison = false;
  // With accumulate_passes: add[bucket] adds this pass's bucket to the sum over passes.
  std::vector<std::unique_ptr<device::Kernel>> add;

  std::unique_ptr<device::Buffer> arena;
  std::unique_ptr<device::Buffer> persistent;
  std::unique_ptr<device::Buffer> gradients;  // PlanMemory::gradients; null: all lie in the arena

  PlanMemory memory;
  KernelChoices choices;
  absl::Duration longest_node;
  std::atomic<uint64_t> nodes_executed{0};
  Pulse* pulse = nullptr;
  std::atomic<bool> cancelled{false};

  std::byte* Address(int value) const {
    return value < 0 ? nullptr : storages[static_cast<size_t>(values[static_cast<size_t>(value)].storage)].address;
  }
  int64_t Bytes(int value) const;
  std::byte* BucketOfPass(int bucket) const {
    return storages[static_cast<size_t>(bucket_storages[static_cast<size_t>(bucket)])].address;
  }
  std::byte* BucketOfSum(int bucket) const;

  // plan_bind.cc: memory and addresses.
  absl::Status Bind(const std::map<std::string, std::byte*>& addresses, const Allocator& for_gradients);
  absl::Status Allocate(const Allocator& for_gradients);
  // Queues filling a buffer with poison (poison.h).
  absl::Status PoisonMemory(const device::Buffer& buffer);
  absl::Status BindVariables(const std::map<std::string, std::byte*>& addresses);
  absl::Status BindInputs();
  absl::Status BindStep(PlanStep& step);
  absl::Status MakeAccumulation();

  absl::Status RunStep(const PlanStep& step);
  absl::Status LaunchStep(const PlanStep& step);
  // SHA-256 of a value's bytes in the plan's layout. Blocks until all queued work is done.
  absl::StatusOr<std::string> DigestOf(int value);
  // Cuts the steps into segments.
  void CutSegments();
  // Queues a segment by replay, or step by step if it contains library work that cannot be recorded.
  absl::Status RunSegment(PlanSegment& segment);
  absl::StatusOr<std::unique_ptr<device::Recording>> Record(const PlanSegment& segment);
  // Calls on_bucket for the buckets from `ready` on that are complete after `step`, and advances `ready`.
  absl::Status Announce(const PlanStep& step, const PassKey& key, BucketReady on_bucket, int& ready);
  // Adds the bucket's gradients of this pass to those of earlier passes, if any.
  absl::Status Accumulate(int bucket, int64_t pass);
  enum class InputsIn : uint8_t { kHostMemory, kDeviceMemory };
  // Internal unless every input has exactly its bytes.
  absl::Status CheckInputs(absl::Span<const InputBytes> inputs) const;
  absl::Status CopyInputs(absl::Span<const InputBytes> inputs, InputsIn memory, const PassKey& key);
  absl::Status QueuePass(absl::Span<const InputBytes> inputs, InputsIn memory, const PassKey& key,
                         BucketReady on_bucket);
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PLAN_STATE_H_
