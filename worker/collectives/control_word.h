// The control word: everything besides gradients that ranks exchange in a step or an evaluation slice. It holds each
// rank's control contribution, the largest gradient magnitude per tensor, and a row of 64-bit slots per logical shard
// for losses, denominators, metric sums and statistics. Each rank packs its word into a block; the blocks are
// all-gathered together with the last bucket; every rank folds the same blocks to the same result.
//
// Invariants
//   * Every rank knows the sizes of all blocks beforehand (WordShape).
//   * Values travel as bit patterns; sums over logical shards are added in index order, so they do not depend on the
//     number of ranks.
//   * A word of another generation, step or attempt is never folded.
//
// Threading: immutable (free functions and plain structs).
#ifndef LOCKSTEP_WORKER_COLLECTIVES_CONTROL_WORD_H_
#define LOCKSTEP_WORKER_COLLECTIVES_CONTROL_WORD_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/protocol/control.h"
#include "common/protocol/ids.h"
#include "worker/collectives/communicator.h"

namespace lockstep::worker {

// The sizes of a control word, the same on every rank.
struct WordShape {
  Generation generation;
  int ranks = 1;
  int logical_shards = 1;
  int tensors = 0;          // trainable tensors: one magnitude each
  int slots_per_shard = 0;  // 64-bit slots of each logical shard
  // For each rank the logical shards that it computes, ascending; each shard has one rank. Empty: the distribution of
  // ShardsOf (bucketer.h).
  std::vector<std::vector<int>> shards = {};
};

// One rank's contribution.
struct RankWord {
  Tag tag;
  ControlContribution control;
  // For each tensor the largest magnitude in any of this rank's shards (exact_sum.h), non-finite included.
  std::vector<uint32_t> magnitudes;
  // slots[i * slots_per_shard + j] is slot j of this rank's i-th shard, in ascending order.
  std::vector<uint64_t> slots;
  // The 32 bytes of the state's digest when this boundary audits the replicas, else empty.
  std::vector<uint8_t> audit;
};

// The folded contributions of all ranks, the same on every rank.
struct ReducedWord {
  Tag tag;
  ControlWord control;                       // slot r: rank r's contribution
  std::vector<uint32_t> magnitudes;          // per tensor, over all logical shards
  std::vector<uint64_t> slots;               // slots[k * slots_per_shard + j]: slot j of logical shard k
  std::vector<std::vector<uint8_t>> audits;  // by rank, empty where none was sent
};

// The size in bytes of each rank's block.
std::vector<int64_t> WordBlockBytes(const WordShape& shape);

// Writes rank `rank`'s word into its block of `blocks` (all ranks' blocks, one after another). InvalidArgument when the
// word does not fit `shape`.
absl::Status PackWord(const WordShape& shape, int rank, const RankWord& word, absl::Span<char> blocks);

// Unpacks and folds the blocks of all ranks. Internal when a block is missing or belongs to another generation, step or
// attempt.
absl::StatusOr<ReducedWord> FoldWords(const WordShape& shape, absl::Span<const char> blocks);

// The bit pattern of a float64 or float32, and back.
uint64_t SlotOf(double value);
uint64_t SlotOf(float value);
double DoubleOf(uint64_t slot);
float FloatOf(uint64_t slot);

// The sum of slot `slot`, which holds float64 values, over the logical shards in index order.
double SumSlots(const WordShape& shape, const ReducedWord& word, int slot);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_CONTROL_WORD_H_
