#include "common/random/random.h"

#include <catch2/catch.hpp>
#include <set>

namespace lockstep {
namespace {

TEST_CASE("random: Philox4x32-10 gives the published known answers", "[random]") {
  using Four = std::array<uint32_t, 4>;
  CHECK(Philox4x32({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(Philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) == Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(Philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("random: seed, stream, step, shard, pass and element each change the number", "[random]") {
  const std::set<uint32_t> numbers = {RandomStream::For(1, 2, 3, 4, 5).At(6),
                                      RandomStream::For(9, 2, 3, 4, 5).At(6),
                                      RandomStream::For(1, 9, 3, 4, 5).At(6),
                                      RandomStream::For(1, 2, 9, 4, 5).At(6),
                                      RandomStream::For(1, 2, 3, 9, 5).At(6),
                                      RandomStream::For(1, 2, 3, 4, 9).At(6),
                                      RandomStream::For(1, 2, 3, 4, 5).At(9),
                                      RandomStream::For(1, 2).At(6),
                                      RandomStream::For(1, 2, uint64_t{3} << 32, 4, 5).At(6)};
  CHECK(numbers.size() == 9);
}

TEST_CASE("random: random access agrees with blocks", "[random]") {
  const RandomStream stream = RandomStream::For(7, StreamOfName("conv1.weight"));
  for (uint64_t e = 0; e < 12; ++e) CHECK(stream.At(e) == stream.Block(e / 4)[e % 4]);
}

TEST_CASE("random: the symmetric unit covers [-1, 1) evenly and a drop threshold drops its share", "[random]") {
  CHECK(SymmetricUnit(0) == -1.0f);
  CHECK(SymmetricUnit(~0u) == 1.0f - 0x1p-23f);
  const RandomStream stream = RandomStream::For(7, 8, 9, 0, 0);
  double sum = 0;
  int dropped = 0;
  const int n = 100000;
  for (int e = 0; e < n; ++e) {
    sum += SymmetricUnit(stream.At(e));
    dropped += stream.At(e) < DropThreshold(0.25);
  }
  CHECK(std::abs(sum / n) < 0.01);
  CHECK(std::abs(dropped / double{n} - 0.25) < 0.01);
}

}  // namespace
}  // namespace lockstep
