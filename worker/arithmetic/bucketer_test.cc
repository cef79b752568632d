#include "worker/arithmetic/bucketer.h"

#include <catch2/catch.hpp>
#include <numeric>
#include <random>

namespace lockstep::worker {
namespace {

TEST_CASE("bucketer: every tensor lies aligned, in order, in one bucket, apart from the others", "[bucketer]") {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    INFO("seed " << seed);
    std::mt19937_64 random(seed);
    std::vector<int64_t> sizes(random() % 40);
    for (int64_t& size : sizes) size = 1 + static_cast<int64_t>(random() % 3000);
    const GradientLayout layout(sizes, static_cast<int64_t>(random() % 20000));

    REQUIRE(layout.tensors().size() == sizes.size());
    int64_t end = 0;
    int next_tensor = 0;
    for (const Bucket& bucket : layout.buckets()) {
      CHECK(bucket.range.offset % 64 == 0);
      CHECK(bucket.range.offset >= end);
      CHECK(bucket.first_tensor == next_tensor);
      CHECK(bucket.last_tensor > bucket.first_tensor);
      end = bucket.range.offset;
      for (; next_tensor < bucket.last_tensor; ++next_tensor) {
        const FlatRange tensor = layout.tensors()[static_cast<size_t>(next_tensor)];
        CHECK(tensor.size == sizes[static_cast<size_t>(next_tensor)]);
        CHECK(tensor.offset % 16 == 0);
        CHECK(tensor.offset >= end);
        end = tensor.end();
      }
      CHECK(bucket.range.end() == end);
    }
    CHECK(next_tensor == static_cast<int>(sizes.size()));
    CHECK(layout.total_elements() >= end);
  }
}

TEST_CASE("bucketer: a bucket closes when it is full, and a large tensor has its own", "[bucketer]") {
  const GradientLayout layout(std::vector<int64_t>{100, 100, 100, 5000, 10, 20}, 800);

  REQUIRE(layout.buckets().size() == 4);
  CHECK(layout.buckets()[0].last_tensor == 2);
  CHECK(layout.buckets()[1].last_tensor == 3);
  CHECK(layout.buckets()[2].last_tensor == 4);
  CHECK(layout.buckets()[3].last_tensor == 6);
}

TEST_CASE("bucketer: the parts of tensors in a range are found, the padding is not", "[bucketer]") {
  const GradientLayout layout(std::vector<int64_t>{20, 5, 40}, 1 << 20);  // at 0, 32 and 48
  std::vector<std::pair<int, FlatRange>> parts;
  layout.ForEachTensorIn({10, 50}, [&](int tensor, FlatRange part) { parts.emplace_back(tensor, part); });

  CHECK(parts == std::vector<std::pair<int, FlatRange>>{{0, {10, 10}}, {1, {32, 5}}, {2, {48, 12}}});
  parts.clear();
  layout.ForEachTensorIn({21, 10}, [&](int tensor, FlatRange part) { parts.emplace_back(tensor, part); });
  CHECK(parts.empty());
}

TEST_CASE("bucketer: blocks cover a bucket for any number of ranks, shards cover the batch", "[bucketer]") {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (const int64_t elements : {0, 1, 15, 16, 17, 100, 4096, 70001}) {
      const std::vector<int64_t> blocks = BlockSizes(elements, ranks);
      REQUIRE(blocks.size() == static_cast<size_t>(ranks));
      CHECK(std::accumulate(blocks.begin(), blocks.end(), int64_t{0}) == elements);
      int64_t offset = 0;
      for (const int64_t block : blocks) {
        CHECK(block >= 0);
        CHECK((offset % 16 == 0 || offset == elements));
        offset += block;
      }
    }
    for (int shards = ranks; shards <= 40; ++shards) {
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        const ShardRange range = ShardsOf(rank, ranks, shards);
        CHECK(range.first == next);
        CHECK(range.last - range.first >= shards / ranks);
        CHECK(range.last - range.first <= shards / ranks + 1);
        next = range.last;
      }
      CHECK(next == shards);
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
