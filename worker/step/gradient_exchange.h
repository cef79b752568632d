// One attempt at reducing a step's gradients: takes the gradients of this rank's logical shards one after another,
// quantises and adds them (rule 23), sends each bucket as soon as the last shard has filled it, and exchanges the
// control word with the last one. Afterwards every rank holds the same float32 sums and the same word.
//
//   1 Begin ──(AddBucket × buckets, EndShard) × shards of this rank──▶ 2 all on their way ──Finish──▶ 3 reduced
//
// Invariants
//   * Nothing here writes the state: what a broken attempt leaves behind is thrown away.
//   * With one logical shard, its gradient is the sum, bit by bit (rule 28). With several, the sums do not depend on
//     which rank computed which shard (ReductionMode::kExact).
// Threading: owned by the engine thread. The communicator's threads call back into Convert while an attempt is under
// way; a Finish that returned, whatever it returned, has waited for all of them.
#ifndef LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_
#define LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/sync/pulse.h"
#include "worker/collectives/bucketer.h"
#include "worker/collectives/communicator.h"
#include "worker/collectives/control_word.h"

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
  };

  explicit GradientExchange(Options options);

  // Whether the gradient of the only shard, on its only member, is the sum: `gradient` returns what AddBucket was
  // given, which stays as it is until then.
  static bool TakesAsItIs(int logical_shards, ReductionMode reduction) {
    return reduction == ReductionMode::kExact && logical_shards == 1;
  }
  // What it holds of memory, beside a little.
  static int64_t BytesOf(const GradientLayout& layout, int logical_shards, ReductionMode reduction);

  // Starts an attempt. `exponents`: one per tensor of the layout. The communicator must outlive the attempt.
  void Begin(Communicator& communicator, Tag tag, absl::Span<const int32_t> exponents);

  // The shards of this rank in the generation of the last Begin.
  ShardRange shards() const { return shards_; }

  // Takes one bucket of the current shard's gradients (of the sum over its samples): `values` are those of the bucket's
  // range, and nobody's any more on return, unless TakesAsItIs. With the rank's last shard the bucket leaves at once.
  // REQUIRES: buckets in order.
  void AddBucket(int bucket, absl::Span<const float> values);
  // Ends the current shard: its slots of the word. REQUIRES: every bucket was added.
  void EndShard(absl::Span<const uint64_t> slots);

  // Ends the attempt: waits for every bucket and the word. On an error nothing is reduced; the communicator is broken.
  // Also ends an attempt that lacks shards: then it aborts the communicator with `early` first and returns that.
  absl::StatusOr<ReducedWord> Finish(const ControlContribution& slot, const absl::Status& early);

  // The reduced sum of a tensor's gradient. Valid after a successful Finish until the next Begin.
  absl::Span<const float> gradient(int tensor) const;

 private:
  void SendBucket(const Bucket& bucket);
  bool in_last_shard() const { return added_ + 1 == shards_.last - shards_.first; }
  bool takes_as_it_is() const { return TakesAsItIs(options_.logical_shards, options_.reduction); }
  bool sums_integers() const { return options_.reduction == ReductionMode::kExact && options_.logical_shards > 1; }

  const Options options_;
  std::vector<int64_t> sums_;           // flat, as the layout says
  std::vector<float> floats_;           // likewise: what is gathered
  std::vector<const float*> as_it_is_;  // by tensor
  std::vector<int32_t> exponents_;
  std::vector<char> word_blocks_;
  RankWord word_;
  Communicator* communicator_ = nullptr;
  Tag tag_;
  ShardRange shards_;
  int added_ = 0;        // shards ended
  int next_bucket_ = 0;  // of the current shard
  std::vector<Handle> handles_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_GRADIENT_EXCHANGE_H_
