#include "worker/step/shard_claims.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "worker/arithmetic/bucketer.h"

namespace lockstep::worker {
namespace {

// A claim travels as one word for the shard that was begun, counted from 1, then a bit per shard that is summed.
size_t BitWords(int logical_shards) { return (static_cast<size_t>(logical_shards) + 63) / 64; }

std::vector<int> ShardsIn(const ShardClaim& claim) {
  std::vector<int> shards = claim.summed;
  if (claim.begun >= 0) shards.push_back(claim.begun);
  return shards;
}

}  // namespace

int64_t ClaimBytes(int logical_shards) {
  return static_cast<int64_t>((1 + BitWords(logical_shards)) * sizeof(uint64_t));
}

void PackClaim(const ShardClaim& claim, int logical_shards, absl::Span<char> out) {
  std::vector<uint64_t> words(1 + BitWords(logical_shards));
  LS_CHECK(out.size() == words.size() * sizeof(uint64_t) && claim.begun < logical_shards, "the claim has its size");
  words[0] = static_cast<uint64_t>(claim.begun + 1);
  for (const int shard : claim.summed) {
    LS_CHECK(0 <= shard && shard < logical_shards, "a logical shard of the job is claimed");
    words[1 + static_cast<size_t>(shard) / 64] |= uint64_t{1} << (shard % 64);
  }
  std::memcpy(out.data(), words.data(), out.size());
}

absl::StatusOr<std::vector<ShardClaim>> UnpackClaims(int ranks, int logical_shards, absl::Span<const char> bytes) {
  const auto each = static_cast<size_t>(ClaimBytes(logical_shards));
  if (bytes.size() != each * static_cast<size_t>(ranks)) {
    return absl::InternalError(absl::StrCat("the claims of ", ranks, " ranks came as ", bytes.size(), " bytes"));
  }
  std::vector<ShardClaim> claims(static_cast<size_t>(ranks));
  std::vector<uint64_t> words(each / sizeof(uint64_t));
  for (size_t rank = 0; rank < claims.size(); ++rank) {
    std::memcpy(words.data(), bytes.data() + rank * each, each);
    for (size_t bit = 0; bit < BitWords(logical_shards) * 64; ++bit) {
      if ((words[1 + bit / 64] >> (bit % 64) & 1) != 0) claims[rank].summed.push_back(static_cast<int>(bit));
    }
    const std::vector<int>& summed = claims[rank].summed;
    const auto shards = static_cast<uint64_t>(logical_shards);
    const bool fits = words[0] <= shards && (summed.empty() || summed.back() < logical_shards);
    if (fits) claims[rank].begun = static_cast<int>(words[0]) - 1;
    if (!fits || std::binary_search(summed.begin(), summed.end(), claims[rank].begun)) {
      return absl::InternalError(
          absl::StrCat("rank ", rank, " claims what none of the ", logical_shards, " logical shards can be"));
    }
  }
  return claims;
}

ShardAssignment AssignShards(const std::vector<ShardClaim>& claims, int logical_shards) {
  const size_t ranks = claims.size();
  LS_CHECK(ranks >= 1 && ranks <= static_cast<size_t>(logical_shards), "there are shards for every rank");
  ShardAssignment assignment{std::vector<std::vector<int>>(ranks), std::vector<bool>(ranks)};
  std::vector<size_t> order(ranks);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ShardsIn(claims[a]).size() > ShardsIn(claims[b]).size(); });
  std::vector<bool> taken(static_cast<size_t>(logical_shards));
  std::vector<int> to_compute(ranks);
  bool any = false;
  for (const size_t rank : order) {
    const std::vector<int> claimed = ShardsIn(claims[rank]);
    if (claimed.empty() || std::any_of(claimed.begin(), claimed.end(), [&](int shard) { return taken[shard]; })) {
      continue;
    }
    any = assignment.accepted[rank] = true;
    assignment.shards[rank] = claimed;
    to_compute[rank] = claims[rank].begun >= 0 ? 1 : 0;
    for (const int shard : claimed) taken[shard] = true;
  }
  for (int shard = 0; any && shard < logical_shards; ++shard) {
    if (taken[shard]) continue;
    const auto least = std::min_element(to_compute.begin(), to_compute.end());
    ++*least;
    assignment.shards[static_cast<size_t>(least - to_compute.begin())].push_back(shard);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<int>& shards = assignment.shards[rank];
    std::sort(shards.begin(), shards.end());
    if (any) continue;
    const ShardRange range = ShardsOf(static_cast<int>(rank), static_cast<int>(ranks), logical_shards);
    for (int shard = range.first; shard < range.last; ++shard) shards.push_back(shard);
  }
  return assignment;
}

ShardAssignment AssignShards(int ranks, int logical_shards) {
  return AssignShards(std::vector<ShardClaim>(static_cast<size_t>(ranks)), logical_shards);
}

}  // namespace lockstep::worker
