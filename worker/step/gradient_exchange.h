// One attempt at reducing a step's gradients. It takes the gradients of this rank's logical shards one shard at a time,
// quantises and sums them on the device (rule 23), sends each bucket as soon as the last shard has filled it, and
// exchanges the control word together with the last bucket. Then every rank has the same float32 sums and the same
// word.
//
//   1 Begin ──(AddBucket × buckets, EndShard) × shards to compute──▶ 2 all buckets sent ──Finish──▶ 3 reduced
//                                                                                          └──▶ 4 broken: a claim
//
// A broken attempt keeps the sums of this rank's finished shards, since a reduction does not modify its addends. The
// next attempt at the same step may start from them (shard_claims.h); anything else drops them.
//
// Until Finish all work is queued in the compute stream, behind the passes. Finish is the gate, at which the host waits
// once for the shards' totals and magnitudes. A bucket is reduced in one of these ways:
//
//   * The host can access device memory: the communicator takes the sums in place. A rank with a single shard instead
//     contributes that shard's float32 values from where the pass left them, half as many bytes, which the receiver
//     quantises (exact_addends.h).
//   * The host cannot, and the communicator works on host memory: the sums are copied to the host during backward,
//     reduced and converted there, and the floats are copied back.
//   * The communicator works on device memory (device_communicator.h) and reduces in a stream of its own.
//   * This rank is alone and its sums are on a device: they are converted there.
//
// Invariants
//   * The exchange never writes the state.
//   * In every bucket sums_ holds the shards order_[0 .. added_). The first buckets also hold the shard in progress, or
//     the one that was in progress when the attempt broke. No shard is added twice. With keeps_values_ the pass's
//     buckets hold order_[0] instead, once it is added, and sums_ nothing.
//   * With one logical shard the sum is its gradient, bit by bit (rule 28). With several, the sums do not depend on the
//     assignment of shards to ranks (ReductionMode::kExact).
//
// Threading: owned by the engine thread. Finish, whatever it returns, has waited for all calls of the communicator.
#ifndef LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_
#define LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/sync/pulse.h"
#include "worker/arithmetic/bucketer.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/control_word.h"
#include "worker/collectives/shared/shared_memory.h"
#include "worker/device/device.h"
#include "worker/device/mirrored_buffer.h"
#include "worker/device/step_math.h"
#include "worker/profile/profiler.h"
#include "worker/step/shard_claims.h"

namespace lockstep::worker {

// Blocks until a call of a communicator has ended, without a time limit: an abort ends it too. Meanwhile `pulse` (may
// be null) reports a wait for a peer.
absl::Status WaitFor(Pending& handle, Pulse* pulse);

class GradientExchange {
 public:
  struct Options {
    GradientLayout layout;
    int logical_shards = 1;
    int slots_per_shard = 0;
    ReductionMode reduction = ReductionMode::kExact;
    Pulse* pulse = nullptr;
    Profiler* profiler = nullptr;  // may be null
    // The device of the gradients and the stream that computes them; both outlive the exchange.
    device::Device* device = nullptr;
    device::Stream* stream = nullptr;
    // The device address of each bucket of the layout, from which a shard's gradients are read.
    std::vector<const float*> buckets;
    // Whether a bucket holds a shard's gradients until the shard's next pass begins.
    bool buckets_stay = false;
    // What peers on this host may read; null: nothing. Sums in host memory are allocated there.
    std::shared_ptr<SharedMemory> shared_memory;
  };

  // ResourceExhausted when memory is exhausted.
  static absl::StatusOr<std::unique_ptr<GradientExchange>> Make(Options options);
  // Waits for queued work.
  ~GradientExchange();

  // With one logical shard the gradient is used in place: it is the sum, and nothing is exchanged.
  static bool TakesAsItIs(int logical_shards, ReductionMode reduction) {
    return reduction == ReductionMode::kExact && logical_shards == 1;
  }
  // The memory in bytes that it holds, except for small buffers.
  static int64_t BytesOf(const GradientLayout& layout, int logical_shards, ReductionMode reduction);

  // The shards that the previous, broken attempt has summed and that an attempt with this tag and these exponents can
  // reuse.
  ShardClaim Claim(Tag tag, absl::Span<const int32_t> exponents) const;
  // Drops these sums, because the state from which they were computed is gone.
  void DropSums() { broken_ = false; }

  // Starts an attempt. `exponents`: one per tensor of the layout. `shards`: the assignment of shards to ranks; if this
  // rank's claim was accepted, it starts from the claimed sums. The communicator must outlive the attempt. After an
  // error of the device, end the attempt with Finish.
  absl::Status Begin(Communicator& communicator, Tag tag, absl::Span<const int32_t> exponents, ShardAssignment shards);
  // Starts the next attempt at the same step, with other exponents and the same assignment. A rank that holds float32
  // values keeps them, since they do not depend on exponents, and computes nothing. REQUIRES: Finish has succeeded.
  absl::Status BeginAgain(absl::Span<const int32_t> exponents);

  // The logical shards that this rank must compute in the current attempt, in this order. Empty: its whole contribution
  // was claimed and is being sent.
  std::vector<int> shards() const { return {order_.begin() + kept_, order_.end()}; }

  // Queues the addition of one bucket of the current shard's gradients (summed over its samples), behind the work
  // queued so far, which fills the bucket. Work queued later may overwrite the bucket's memory, unless buckets_stay.
  // With the rank's last shard the bucket is sent. A bucket that holds the shard already, from a broken attempt, is
  // only sent, since its gradients are the same. REQUIRES: buckets in order.
  absl::Status AddBucket(int bucket);
  // The current shard's slots of the control word, slots_per_shard float64 in device memory: zero when the shard
  // begins; work in the stream adds to them.
  double* shard_totals() const;
  // Ends the current shard. REQUIRES: every bucket was added, and all work that adds to its totals is queued.
  absl::Status EndShard();

  // Blocks until the passes are done and every bucket is sent. Optional: Finish does the same.
  absl::Status WaitForPasses();

  // Ends the attempt: blocks until the device, every bucket and the word are done. After an error nothing is reduced,
  // the communicator is broken, and this rank's sums may be claimed. It also ends an incomplete attempt: then it aborts
  // the communicator with `early` and returns that. Afterwards nothing of the attempt is queued, except, after success,
  // copies of floats to the device.
  absl::StatusOr<ReducedWord> Finish(const ControlContribution& slot, const absl::Status& early);

  // The reduced sum of a tensor's gradient, at a constant address in device memory. Valid from a successful Finish
  // until the next Begin, for work queued in the stream.
  const float* gradient(int tensor) const;
  // The first tensor whose reduced gradient is non-finite, or -1. Blocks. For native sums, which may overflow during
  // the reduction.
  absl::StatusOr<int> FirstNonFinite();

 private:
  explicit GradientExchange(Options options);

  absl::Status Allocate();
  // Zeroed memory for what is sent to peers or comes from them, without a host side.
  absl::StatusOr<device::MirroredBuffer> AllocateExchanged(size_t bytes);
  // Starts an attempt from these shards, which the sums or the pass's buckets hold.
  absl::Status Start(const ShardClaim& kept, absl::Span<const int32_t> exponents);
  // Sets order_: starts with the shards of an accepted claim, if any.
  void OrderShards(const ShardClaim& kept);
  // Sets keeps_values_: whether this attempt sends its single shard as float32 values. If not, quantises values that a
  // broken attempt left.
  absl::Status ChooseForm();
  absl::Status SendAll();
  absl::Status SendBucket(int bucket);
  absl::Status SubmitStaged(bool wait);
  void SubmitToHost(int bucket);
  absl::Status SendWord(const WordShape& shape, const ControlContribution& slot);
  absl::Status WaitForAll(absl::Status outcome);
  int own_shards() const { return static_cast<int>(order_.size()); }
  bool in_last_shard() const { return added_ + 1 == own_shards(); }
  size_t row_bytes() const { return static_cast<size_t>(options_.slots_per_shard) * sizeof(double); }
  size_t row_at(int shard) const { return totals_at() + static_cast<size_t>(shard) * row_bytes(); }
  // Whether buckets travel through the host side of the mirrored buffers.
  bool goes_over_host() const {
    return copies_ != nullptr && communicator_->on_device() == nullptr && communicator_->size() > 1;
  }
  bool takes_as_it_is() const { return TakesAsItIs(options_.logical_shards, options_.reduction); }
  bool sums_integers() const { return options_.reduction == ReductionMode::kExact && options_.logical_shards > 1; }
  FlatRange range_of(int bucket) const { return options_.layout.buckets()[static_cast<size_t>(bucket)].range; }
  uint32_t* magnitudes() const { return reinterpret_cast<uint32_t*>(records_.on_device()); }
  size_t totals_at() const;
  size_t record_bytes() const { return row_at(own_shards()); }  // for this rank's shards
  int64_t* sums(int bucket) const { return reinterpret_cast<int64_t*>(sums_.on_device()) + range_of(bucket).offset; }
  const int32_t* exponents() const { return reinterpret_cast<const int32_t*>(exponents_.on_device()); }
  // The number of buckets that hold sums of a broken attempt.
  int kept_buckets() const;
  float* floats(int bucket) const { return reinterpret_cast<float*>(floats_.on_device()) + range_of(bucket).offset; }

  const Options options_;
  device::StepMath& math_;
  std::vector<std::unique_ptr<device::TensorTable>> tables_;  // by bucket; indices are those of tensors
  device::MirroredBuffer sums_;             // int64, in the layout's order; with keeps_values_ float32
  device::MirroredBuffer floats_;           // float32, in the layout's order: the reduced gradient
  device::MirroredBuffer records_;          // magnitudes by tensor, then totals by shard in the order of order_
  device::MirroredBuffer exponents_;        // int32, one per tensor
  std::unique_ptr<device::Stream> copies_;  // to the host; null if the host can access device memory
  std::unique_ptr<device::Event> filled_;
  std::vector<std::unique_ptr<device::Event>> staged_;  // by bucket: its copy to the host is done
  std::vector<char> word_blocks_;
  Communicator* communicator_ = nullptr;
  Tag tag_;
  std::vector<std::vector<int>> shards_;  // by rank
  std::vector<int> order_;                // this rank's shards: first the claimed ones, then in order of computation
  int kept_ = 0;                          // claimed shards
  int added_ = 0;                         // shards ended
  int next_bucket_ = 0;                   // of the current shard
  int begun_buckets_ = 0;                 // buckets that hold the current shard already, from a broken attempt
  bool keeps_values_ = false;             // the single shard is contributed as float32 values, from its buckets
  bool began_ = false;
  bool broken_ = false;  // the attempt is over, and its sums may be claimed
  int sent_ = 0;         // buckets whose copy to the host is queued, or that are submitted
  int submitted_ = 0;    // buckets handed to the communicator
  bool passes_done_ = false;
  std::vector<Handle> handles_;  // of the first buckets, in order
  Handle word_handle_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_
