#include "worker/step/shard_claims.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <random>
#include <vector>

#include "worker/arithmetic/bucketer.h"

namespace lockstep::worker {
namespace {

using Shards = std::vector<std::vector<int>>;

std::vector<ShardClaim> SentAndReceived(const std::vector<ShardClaim>& claims, int logical_shards) {
  const auto each = static_cast<size_t>(ClaimBytes(logical_shards));
  std::vector<char> bytes(each * claims.size(), '?');
  for (size_t rank = 0; rank < claims.size(); ++rank) {
    PackClaim(claims[rank], logical_shards, absl::MakeSpan(bytes).subspan(rank * each, each));
  }
  return UnpackClaims(static_cast<int>(claims.size()), logical_shards, bytes).value();
}

TEST_CASE("shard claims: without a claim every rank computes what it computes in any step", "[claims]") {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    const ShardAssignment assignment = AssignShards(ranks, 7);
    for (int rank = 0; rank < ranks; ++rank) {
      const ShardRange range = ShardsOf(rank, ranks, 7);
      CHECK(assignment.shards[rank].size() == static_cast<size_t>(range.last - range.first));
      CHECK(assignment.shards[rank].front() == range.first);
      CHECK_FALSE(assignment.accepted[rank]);
    }
  }
}

TEST_CASE("shard claims: who holds a shard keeps it, and the missing ones are spread evenly", "[claims]") {
  const ShardAssignment assignment = AssignShards({{{0, 1, 2}}, {{3, 4}, 5}}, 9);

  // Rank 1 still has shard 5 to compute.
  CHECK(assignment.shards == Shards{{0, 1, 2, 6, 7}, {3, 4, 5, 8}});
  CHECK(assignment.accepted == std::vector<bool>{true, true});
}

TEST_CASE("shard claims: a newcomer takes its part of what is missing, which may be nothing", "[claims]") {
  CHECK(AssignShards({{{0, 1}}, {}, {{2, 3}}}, 6).shards == Shards{{0, 1, 4}, {5}, {2, 3}});
  CHECK(AssignShards({{{0, 1, 2}}, {}, {{3, 4, 5}}}, 6).shards == Shards{{0, 1, 2}, {}, {3, 4, 5}});
}

TEST_CASE("shard claims: of two that share a shard the larger one is accepted, the other is dropped whole",
          "[claims]") {
  const ShardAssignment larger = AssignShards({{{0, 1}}, {{1, 2, 3}}}, 6);
  CHECK(larger.accepted == std::vector<bool>{false, true});
  CHECK(larger.shards == Shards{{0, 5}, {1, 2, 3, 4}});

  const ShardAssignment equal = AssignShards({{{0}, 1}, {{1, 2}}}, 6);
  CHECK(equal.accepted == std::vector<bool>{true, false});
  CHECK(equal.shards == Shards{{0, 1, 3, 5}, {2, 4}});
}

TEST_CASE("shard claims: whatever is claimed, every shard has one rank", "[claims]") {
  std::mt19937 random(3);
  for (int round = 0; round < 2000; ++round) {
    const int shards = 1 + static_cast<int>(random() % 70);
    const int ranks = 1 + static_cast<int>(random() % static_cast<unsigned>(std::min(shards, 9)));
    std::vector<ShardClaim> claims(static_cast<size_t>(ranks));
    for (ShardClaim& claim : claims) {
      const unsigned density = 1 + random() % 12;
      for (int k = 0; k < shards; ++k) {
        if (random() % density != 0) continue;
        if (claim.begun < 0 && random() % 4 == 0) {
          claim.begun = k;
        } else {
          claim.summed.push_back(k);
        }
      }
    }

    const ShardAssignment assignment = AssignShards(SentAndReceived(claims, shards), shards);

    std::vector<int> owners(static_cast<size_t>(shards));
    for (size_t rank = 0; rank < claims.size(); ++rank) {
      const std::vector<int>& own = assignment.shards[rank];
      CHECK(std::is_sorted(own.begin(), own.end()));
      for (const int shard : own) ++owners[static_cast<size_t>(shard)];
      if (!assignment.accepted[rank]) continue;
      CHECK(std::includes(own.begin(), own.end(), claims[rank].summed.begin(), claims[rank].summed.end()));
      CHECK((claims[rank].begun < 0 || std::binary_search(own.begin(), own.end(), claims[rank].begun)));
    }
    CHECK(owners == std::vector<int>(static_cast<size_t>(shards), 1));
  }
}

TEST_CASE("shard claims: they arrive as they were sent", "[claims]") {
  const std::vector<ShardClaim> claims = {{}, {{0, 63, 64, 99}, 98}, {{}, 0}};
  CHECK(SentAndReceived(claims, 100) == claims);
}

TEST_CASE("shard claims: what no claim can be is refused", "[claims]") {
  const auto words = [](uint64_t begun, uint64_t bits) {
    std::vector<char> bytes(2 * sizeof(uint64_t));
    std::memcpy(bytes.data(), &begun, sizeof begun);
    std::memcpy(bytes.data() + sizeof begun, &bits, sizeof bits);
    return UnpackClaims(1, 5, bytes).status().code();
  };

  CHECK(words(5, 0b01111) == absl::StatusCode::kOk);
  CHECK(words(5, 0b10000) == absl::StatusCode::kInternal);
  CHECK(words(6, 0) == absl::StatusCode::kInternal);
  CHECK(words(~uint64_t{0}, 0) == absl::StatusCode::kInternal);
  CHECK(words(0, 0b100000) == absl::StatusCode::kInternal);
  CHECK(UnpackClaims(2, 5, std::vector<char>(16)).status().code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace lockstep::worker
