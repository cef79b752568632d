// Decides which rank computes which logical shards in the first attempt of a generation. Ranks whose last attempt at
// the same step was broken still hold the sums of the shards that they had finished; they say so in a claim. All ranks
// exchange their claims and decide alike: whoever claims a shard keeps it, the missing ones are spread over the ranks.
//
//   1 claims exchanged ──▶ 2 each claim accepted whole or dropped whole ──▶ 3 missing shards spread
//
// Invariants
//   * In an assignment every logical shard belongs to exactly one rank.
//   * A claim is accepted whole or not at all: a shard cannot be taken out of a sum. Of claims that share a shard, one
//     is accepted: that of more shards, and among equals that of the lowest rank.
//   * Without any claim the assignment is that of ShardsOf (bucketer.h).
//
// Threading: immutable (free functions and plain structs).
#ifndef LOCKSTEP_WORKER_STEP_SHARD_CLAIMS_H_
#define LOCKSTEP_WORKER_STEP_SHARD_CLAIMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep::worker {

// What one rank holds of the step that comes next.
struct ShardClaim {
  std::vector<int> summed;  // logical shards that are whole in its sums, ascending
  int begun = -1;           // a further one that is in a part of them: its holder computes it again; -1: none

  bool empty() const { return summed.empty() && begun < 0; }
  friend bool operator==(const ShardClaim&, const ShardClaim&) = default;
};

struct ShardAssignment {
  std::vector<std::vector<int>> shards;  // by rank, ascending: those whose sum the rank contributes
  std::vector<bool> accepted;            // by rank: it goes on from what it claimed; else it drops that
};

// Bytes of a claim on its way, the same for every rank.
int64_t ClaimBytes(int logical_shards);
// REQUIRES: out.size() == ClaimBytes(logical_shards); shards in [0, logical_shards).
void PackClaim(const ShardClaim& claim, int logical_shards, absl::Span<char> out);
// The claims of all ranks, one after another. Internal when they are none.
absl::StatusOr<std::vector<ShardClaim>> UnpackClaims(int ranks, int logical_shards, absl::Span<const char> bytes);

// A missing shard goes to the rank that has the least to compute, among equals to the lowest.
// REQUIRES: one claim per rank, at least one rank and at most logical_shards.
ShardAssignment AssignShards(const std::vector<ShardClaim>& claims, int logical_shards);
// As without any claim.
ShardAssignment AssignShards(int ranks, int logical_shards);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_SHARD_CLAIMS_H_
