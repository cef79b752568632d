// Assigns logical shards to ranks for the first attempt of a generation. A rank whose last attempt at the same step
// broke still holds the sum of the shards that it had finished, and announces them in a claim. All ranks exchange their
// claims and decide alike: a rank keeps the shards of an accepted claim, and the missing shards are distributed over
// the ranks.
//
//   1 claims exchanged ──▶ 2 each claim accepted or dropped as a whole ──▶ 3 missing shards distributed
//
// Invariants
//   * In an assignment every logical shard belongs to exactly one rank.
//   * A claim is accepted or dropped as a whole, since a shard cannot be removed from a sum. Of claims that share a
//     shard, only one is accepted: that with more shards, and among equals that of the lowest rank.
//   * Without claims the assignment is that of ShardsOf (bucketer.h).
//
// Threading: immutable (free functions and plain structs).
#ifndef LOCKSTEP_WORKER_STEP_SHARD_CLAIMS_H_
#define LOCKSTEP_WORKER_STEP_SHARD_CLAIMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace lockstep::worker {

// The logical shards of the next step that a rank has summed already.
struct ShardClaim {
  std::vector<int> summed;  // shards contained in all its buckets, ascending
  int begun = -1;           // a further shard, contained in some buckets only, which the rank computes again; -1: none

  bool empty() const { return summed.empty() && begun < 0; }
  friend bool operator==(const ShardClaim&, const ShardClaim&) = default;
};

struct ShardAssignment {
  std::vector<std::vector<int>> shards;  // by rank, ascending: the shards that it contributes
  std::vector<bool> accepted;            // by rank: whether it starts from its claimed sums or drops them
};

// The size in bytes of a packed claim, the same for every rank.
int64_t ClaimBytes(int logical_shards);
// REQUIRES: out.size() == ClaimBytes(logical_shards); shards in [0, logical_shards).
void PackClaim(const ShardClaim& claim, int logical_shards, absl::Span<char> out);
// Unpacks the claims of all ranks, which are concatenated. Internal when they are malformed.
absl::StatusOr<std::vector<ShardClaim>> UnpackClaims(int ranks, int logical_shards, absl::Span<const char> bytes);

// A missing shard goes to the rank that has the least to compute, among equals to the lowest rank.
// REQUIRES: one claim per rank; 1 <= ranks <= logical_shards.
ShardAssignment AssignShards(const std::vector<ShardClaim>& claims, int logical_shards);
// The assignment without claims.
ShardAssignment AssignShards(int ranks, int logical_shards);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_STEP_SHARD_CLAIMS_H_
