#include "worker/collectives/control_word.h"

#include <catch2/catch.hpp>
#include <limits>
#include <numeric>

#include "worker/arithmetic/bucketer.h"

namespace lockstep::worker {
namespace {

constexpr Generation kGeneration{.term = 4, .counter = 2};
constexpr Tag kTag{.step = 1234567890123, .attempt = 3};

WordShape ShapeOf(int ranks) {
  return {.generation = kGeneration, .ranks = ranks, .logical_shards = 7, .tensors = 3, .slots_per_shard = 2};
}

// The value of slot j of logical shard k.
double Loss(int shard, int slot) { return 0.1 * (shard + 1) + 1e17 * slot * (shard % 2 == 0 ? 1 : -1); }

RankWord WordOf(const WordShape& shape, int rank) {
  RankWord word{.tag = kTag, .magnitudes = {1, static_cast<uint32_t>(10 * rank), 0}};
  word.control.request(RequestKind::kSnapshot) = 40 + static_cast<uint64_t>(rank);
  word.control.free_to_save = rank != 1;
  word.control.hears_chief = rank != 1;
  const ShardRange shards = ShardsOf(rank, shape.ranks, shape.logical_shards);
  for (int k = shards.first; k < shards.last; ++k) {
    for (int j = 0; j < shape.slots_per_shard; ++j) word.slots.push_back(SlotOf(Loss(k, j)));
  }
  if (rank == 0) word.audit.assign(32, 0xab);
  return word;
}

std::vector<char> BlocksOf(const WordShape& shape) {
  const auto bytes = WordBlockBytes(shape);
  std::vector<char> blocks(static_cast<size_t>(std::accumulate(bytes.begin(), bytes.end(), int64_t{0})), '?');
  for (int rank = 0; rank < shape.ranks; ++rank) {
    REQUIRE(PackWord(shape, rank, WordOf(shape, rank), absl::MakeSpan(blocks)).ok());
  }
  return blocks;
}

TEST_CASE("control word: everyone folds the same word, whatever the number of ranks", "[word]") {
  for (int ranks = 1; ranks <= 7; ++ranks) {
    INFO(ranks << " ranks");
    const WordShape shape = ShapeOf(ranks);
    const auto folded = FoldWords(shape, BlocksOf(shape));
    REQUIRE(folded.ok());

    CHECK(folded->tag == kTag);
    REQUIRE(folded->control.slots.size() == static_cast<size_t>(ranks));
    CHECK(folded->control.Highest(RequestKind::kSnapshot) == static_cast<uint64_t>(40 + ranks - 1));
    CHECK(folded->control.Highest(RequestKind::kStop) == 0);
    CHECK(folded->control.AllFreeToSave() == (ranks == 1));
    CHECK(folded->magnitudes == std::vector<uint32_t>{1, static_cast<uint32_t>(10 * (ranks - 1)), 0});
    CHECK(folded->audits[0] == std::vector<uint8_t>(32, 0xab));
    if (ranks > 1) CHECK(folded->audits[1].empty());
    // Slots in shard order, so a sum in that order has the same bits for every number of ranks.
    double expected = 0;
    for (int k = 0; k < 7; ++k) {
      CHECK(DoubleOf(folded->slots[static_cast<size_t>(2 * k + 1)]) == Loss(k, 1));
      expected += Loss(k, 1);
    }
    CHECK(SumSlots(shape, *folded, 1) == expected);
  }
}

TEST_CASE("control word: the folded slots stand in shard order, whoever contributed which shard", "[word]") {
  WordShape shape = ShapeOf(3);
  shape.shards = {{1, 4, 6}, {}, {0, 2, 3, 5}};
  const auto bytes = WordBlockBytes(shape);
  std::vector<char> blocks(static_cast<size_t>(std::accumulate(bytes.begin(), bytes.end(), int64_t{0})), '?');
  for (int rank = 0; rank < shape.ranks; ++rank) {
    RankWord word{.tag = kTag, .magnitudes = {0, 0, 0}};
    for (const int k : shape.shards[static_cast<size_t>(rank)]) {
      for (int j = 0; j < shape.slots_per_shard; ++j) word.slots.push_back(SlotOf(Loss(k, j)));
    }
    REQUIRE(PackWord(shape, rank, word, absl::MakeSpan(blocks)).ok());
  }

  const auto folded = FoldWords(shape, blocks);

  REQUIRE(folded.ok());
  REQUIRE(folded->slots.size() == 14);
  for (int k = 0; k < 7; ++k) {
    for (int j = 0; j < 2; ++j) CHECK(DoubleOf(folded->slots[static_cast<size_t>(2 * k + j)]) == Loss(k, j));
  }
}

TEST_CASE("control word: a non-finite magnitude on one rank is the tensor's", "[word]") {
  const WordShape shape = ShapeOf(3);
  std::vector<char> blocks = BlocksOf(shape);
  RankWord word = WordOf(shape, 1);
  word.magnitudes[2] = 0x7fc00000u;
  REQUIRE(PackWord(shape, 1, word, absl::MakeSpan(blocks)).ok());

  CHECK(FoldWords(shape, blocks)->magnitudes[2] == 0x7fc00000u);
}

TEST_CASE("control word: a word of another generation, step or attempt is never folded", "[word]") {
  const WordShape shape = ShapeOf(2);
  for (const int what : {0, 1, 2}) {
    std::vector<char> blocks = BlocksOf(shape);
    WordShape other = shape;
    RankWord word = WordOf(shape, 1);
    if (what == 0) other.generation.counter = 3;
    if (what == 1) word.tag.step += 1;
    if (what == 2) word.tag.attempt -= 1;
    REQUIRE(PackWord(other, 1, word, absl::MakeSpan(blocks)).ok());

    const absl::Status status = FoldWords(shape, blocks).status();
    CHECK(status.code() == absl::StatusCode::kInternal);
    CHECK(std::string(status.message()).find("rank 1") != std::string::npos);
  }
}

TEST_CASE("control word: a word or buffer of another shape is refused", "[word]") {
  const WordShape shape = ShapeOf(2);
  std::vector<char> blocks = BlocksOf(shape);
  RankWord word = WordOf(shape, 0);
  word.magnitudes.pop_back();
  CHECK(PackWord(shape, 0, word, absl::MakeSpan(blocks)).code() == absl::StatusCode::kInvalidArgument);
  word = WordOf(shape, 0);
  word.slots.push_back(0);
  CHECK(PackWord(shape, 0, word, absl::MakeSpan(blocks)).code() == absl::StatusCode::kInvalidArgument);
  word = WordOf(shape, 0);
  word.audit.resize(31);
  CHECK(PackWord(shape, 0, word, absl::MakeSpan(blocks)).code() == absl::StatusCode::kInvalidArgument);
  blocks.pop_back();
  CHECK(PackWord(shape, 0, WordOf(shape, 0), absl::MakeSpan(blocks)).code() == absl::StatusCode::kInvalidArgument);
  CHECK(FoldWords(shape, blocks).status().code() == absl::StatusCode::kInternal);
}

TEST_CASE("control word: slots carry every bit pattern", "[word]") {
  for (const double value : {0.0, -0.0, 1e-320, std::numeric_limits<double>::infinity(), 0.1}) {
    CHECK(SlotOf(DoubleOf(SlotOf(value))) == SlotOf(value));
  }
  CHECK(FloatOf(SlotOf(0.1f)) == 0.1f);
  CHECK(DoubleOf(SlotOf(0.1)) == 0.1);
}

}  // namespace
}  // namespace lockstep::worker
