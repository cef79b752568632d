// Random numbers of many neighbouring blocks at a time (common/random/random.h), by vectors of counters.
//
// Threading: immutable (free functions).
#ifndef LOCKSTEP_WORKER_KERNELS_CPU_RANDOM_BLOCKS_H_
#define LOCKSTEP_WORKER_KERNELS_CPU_RANDOM_BLOCKS_H_

#include <array>
#include <cstdint>

#include "common/random/random.h"
#include "worker/kernels/cpu/vector.h"

namespace lockstep::device::cpu::LS_CODE {

// Blocks at a time: a multiple of all vectors' widths.
inline constexpr int64_t kBlocksAtOnce = 32;
inline constexpr int64_t kNumbersAtOnce = 4 * kBlocksAtOnce;

// Writes numbers 4 * first to 4 * first + kNumbersAtOnce - 1 of `stream`.
[[gnu::always_inline]] inline void DrawBlocks(const RandomStream& stream, int64_t first, uint32_t* numbers) {
  constexpr uint64_t kLanes[] = {0, 1, 2, 3, 4, 5, 6, 7};
  WideVector lanes;
  __builtin_memcpy(&lanes, kLanes, sizeof lanes);
  const std::array<uint32_t, 2> key = stream.key();
  const WideVector by0 = WideVector{} + 0xD2511F53u, by2 = WideVector{} + 0xCD9E8D57u;
  for (int64_t begin = 0; begin < kBlocksAtOnce; begin += kWideVector) {
    // The lower half of a lane is a word of Philox's counter; its upper half means nothing.
    WideVector c0 = lanes + static_cast<uint64_t>(first + begin), c1 = c0 >> 32, c2 = {}, c3 = {};
    uint32_t key0 = key[0], key1 = key[1];
#pragma GCC unroll 10
    for (int round = 0; round < 10; ++round) {
      const WideVector product0 = MultiplyLow(c0, by0), product2 = MultiplyLow(c2, by2);
      c0 = (product2 >> 32) ^ c1 ^ (WideVector{} + key0);
      c1 = product2;
      c2 = (product0 >> 32) ^ c3 ^ (WideVector{} + key1);
      c3 = product0;
      key0 += 0x9E3779B9u;
      key1 += 0xBB67AE85u;
    }
    const WideVector low = (c0 & 0xffffffffu) | (c1 << 32), high = (c2 & 0xffffffffu) | (c3 << 32);
#pragma GCC unroll 8
    for (int lane = 0; lane < kWideVector; ++lane) {
      uint32_t* block = numbers + 4 * (begin + lane);
      block[0] = static_cast<uint32_t>(low[lane]);
      block[1] = static_cast<uint32_t>(low[lane] >> 32);
      block[2] = static_cast<uint32_t>(high[lane]);
      block[3] = static_cast<uint32_t>(high[lane] >> 32);
    }
  }
}

}  // namespace lockstep::device::cpu::LS_CODE

#endif  // LOCKSTEP_WORKER_KERNELS_CPU_RANDOM_BLOCKS_H_
