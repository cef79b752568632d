// One attempt at reducing a step's gradients: takes the gradients of this rank's logical shards one after another,
// quantises and adds them where they lie (rule 23), sends each bucket as soon as the last shard has filled it, and
// exchanges the control word with the last one. Afterwards every rank holds the same float32 sums and the same word.
//
//   1 Begin ──(AddBucket × buckets, EndShard) × shards to compute──▶ 2 all on their way ──Finish──▶ 3 reduced
//                                                                                          └──▶ 4 broken: a claim
//
// A broken attempt leaves the sums of this rank's finished shards where they are: reducing does not change what it
// sums. The next attempt at the same step may begin with them (shard_claims.h); anything else drops them.
//
// Until Finish everything is queued in the stream that computes, behind the passes; Finish is the gate at which the
// host waits, once, for the shards' totals and magnitudes. A bucket leaves in one of these ways:
//
//   * the host sees the device's memory: the communicator takes the sums in place. Of a rank with one shard, it takes
//     that shard's float32 values, half as many bytes, and they are quantised where they are added (exact_addends.h);
//   * it does not, and the communicator works on host memory: the sums are copied to the host behind backward, reduced
//     and converted there, and the floats are copied back;
//   * the communicator works on device memory (device_communicator.h): it reduces in a stream of its own;
//   * this rank is alone, and its sums lie on a device: they are converted there.
//
// Invariants
//   * Nothing here writes the state.
//   * sums_ holds, in every bucket, the shards order_[0 .. added_); in the first buckets of a shard that is under way,
//     or was when the attempt broke, that one as well. No shard is ever added twice.
//   * With one logical shard, its gradient is the sum, bit by bit (rule 28). With several, the sums do not depend on
//     which rank computed which shard (ReductionMode::kExact).
// Threading: owned by the engine thread. The communicator's threads call back into Convert while an attempt is under
// way; a Finish that returned, whatever it returned, has waited for all of them.
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
#include "worker/device/device.h"
#include "worker/device/mirrored_buffer.h"
#include "worker/device/step_math.h"
#include "worker/profile/profiler.h"
#include "worker/step/shard_claims.h"

namespace lockstep::worker {

// Waits for a call of a communicator until it has ended, however long that takes: an abort ends it too. `pulse` (may be
// null) shows meanwhile that a peer is waited for.
absl::Status WaitFor(Pending& handle, Pulse* pulse);

class GradientExchange {
 public:
  struct Options {
    GradientLayout layout;
    int logical_shards = 1;
    int slots_per_shard = 0;
    ReductionMode reduction = ReductionMode::kExact;
    Pulse* pulse = nullptr;
    Profiler* profiler = nullptr;  // keeps where the time goes; null: nobody asks
    // Where gradients lie, and the stream that computes them; both outlive this.
    device::Device* device = nullptr;
    device::Stream* stream = nullptr;
    // Per bucket of the layout, its address in device memory: what a shard's gradients are taken from.
    std::vector<const float*> buckets;
  };

  // ResourceExhausted when memory does not suffice.
  static absl::StatusOr<std::unique_ptr<GradientExchange>> Make(Options options);
  // Waits for what is queued.
  ~GradientExchange();

  // With one logical shard the gradient is used in place: it is the sum, and nothing is exchanged.
  static bool TakesAsItIs(int logical_shards, ReductionMode reduction) {
    return reduction == ReductionMode::kExact && logical_shards == 1;
  }
  // What it holds of memory, beside a little.
  static int64_t BytesOf(const GradientLayout& layout, int logical_shards, ReductionMode reduction);

  // What the broken attempt before this one left for an attempt with this tag and these exponents.
  ShardClaim Claim(Tag tag, absl::Span<const int32_t> exponents) const;
  // Drops it: the state that it was computed from is gone.
  void DropSums() { broken_ = false; }

  // Starts an attempt. `exponents`: one per tensor of the layout. `shards`: who contributes which; this rank goes on
  // from its claim where that was accepted. The communicator must outlive the attempt. After an error, which is the
  // device's, the attempt is ended by Finish.
  absl::Status Begin(Communicator& communicator, Tag tag, absl::Span<const int32_t> exponents, ShardAssignment shards);

  // The logical shards that this rank has to compute in the attempt of the last Begin, in this order. None: all that it
  // contributes is there already, and on its way.
  std::vector<int> shards() const { return {order_.begin() + kept_, order_.end()}; }

  // Takes one bucket of the current shard's gradients (of the sum over its samples), once the work queued so far has
  // filled it. Its memory may be filled anew by work that is queued after this returned, unless TakesAsItIs. With the
  // rank's last shard the bucket leaves. A bucket that holds the shard already, from a broken attempt, only leaves: the
  // gradients are the same ones. REQUIRES: buckets in order.
  absl::Status AddBucket(int bucket);
  // The current shard's slots of the word, slots_per_shard float64 in device memory: zero when the shard begins, added
  // to by work in the stream.
  double* shard_totals() const;
  // Ends the current shard. REQUIRES: every bucket was added, all that adds to its totals is queued.
  absl::Status EndShard();

  // Waits until the passes are done and every bucket is on its way. Finish does so where nobody did.
  absl::Status WaitForPasses();

  // Ends the attempt: waits for the device, every bucket and the word. On an error nothing is reduced; the communicator
  // is broken, and what this rank had summed may be claimed. Also ends an attempt that lacks shards: then it aborts the
  // communicator with `early` first and returns that. Nothing of the attempt is queued any more, but for copies of
  // floats to the device after a good end.
  absl::StatusOr<ReducedWord> Finish(const ControlContribution& slot, const absl::Status& early);

  // The reduced sum of a tensor's gradient, in device memory: always at the same place. There from a successful Finish
  // until the next Begin, for work that is queued in the stream.
  const float* gradient(int tensor) const;
  // The first tensor of the reduced gradient that is not finite, or -1. Blocks. For native sums, which may overflow on
  // the way.
  absl::StatusOr<int> FirstNonFinite();

 private:
  explicit GradientExchange(Options options);

  absl::Status Allocate();
  // Takes over what a claim said, or begins with nothing.
  void OrderShards(const ShardClaim& kept);
  // Whether this attempt keeps its only shard's values; quantises those that a broken one left, where it does not.
  absl::Status ChooseForm();
  absl::Status KeepValues(int bucket);
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
  // Whether buckets go over the host's side of their buffers.
  bool goes_over_host() const {
    return copies_ != nullptr && communicator_->on_device() == nullptr && communicator_->size() > 1;
  }
  bool takes_as_it_is() const { return TakesAsItIs(options_.logical_shards, options_.reduction); }
  bool sums_integers() const { return options_.reduction == ReductionMode::kExact && options_.logical_shards > 1; }
  FlatRange range_of(int bucket) const { return options_.layout.buckets()[static_cast<size_t>(bucket)].range; }
  uint32_t* magnitudes() const { return reinterpret_cast<uint32_t*>(records_.on_device()); }
  size_t totals_at() const;
  size_t record_bytes() const { return row_at(own_shards()); }  // of this rank's shards
  int64_t* sums(int bucket) const { return reinterpret_cast<int64_t*>(sums_.on_device()) + range_of(bucket).offset; }
  // In the memory of the bucket's sums.
  float* kept_values(int bucket) const { return reinterpret_cast<float*>(sums(bucket)); }
  const int32_t* exponents() const { return reinterpret_cast<const int32_t*>(exponents_.on_device()); }
  // Buckets that hold something of an attempt which broke.
  int kept_buckets() const;
  float* floats(int bucket) const { return reinterpret_cast<float*>(floats_.on_device()) + range_of(bucket).offset; }

  const Options options_;
  device::StepMath& math_;
  std::vector<std::unique_ptr<device::TensorTable>> tables_;  // by bucket; indices are those of tensors
  device::MirroredBuffer sums_;                               // int64, flat, as the layout says; or keeps_values_
  device::MirroredBuffer floats_;                             // likewise: what is gathered
  device::MirroredBuffer records_;          // magnitudes, then totals by shard, in the order of order_
  device::MirroredBuffer exponents_;        // int32, one per tensor
  std::unique_ptr<device::Stream> copies_;  // to the host; null where the host sees the memory
  std::unique_ptr<device::Event> filled_;
  std::vector<std::unique_ptr<device::Event>> staged_;  // by bucket: its copy to the host is done
  std::vector<char> word_blocks_;
  Communicator* communicator_ = nullptr;
  Tag tag_;
  std::vector<std::vector<int>> shards_;  // by rank
  std::vector<int> order_;                // this rank's shards: first those that were summed before, then as computed
  int kept_ = 0;                          // of them, those that were summed before
  int added_ = 0;                         // shards ended
  int next_bucket_ = 0;                   // of the current shard
  int begun_buckets_ = 0;                 // of the current shard: these hold it since a broken attempt
  bool keeps_values_ = false;             // the sums of a bucket are float32 values, of one shard at most
  bool began_ = false;
  bool broken_ = false;  // the attempt is over, and its sums may be claimed
  int sent_ = 0;         // buckets on their way to the host or further
  int submitted_ = 0;    // of them, those that the communicator has
  bool passes_done_ = false;
  std::vector<Handle> handles_;  // of the first buckets, in order
  Handle word_handle_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_
