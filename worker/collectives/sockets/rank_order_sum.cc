#include "worker/collectives/sockets/rank_order_sum.h"

#include <algorithm>

namespace lockstep::worker {

void SumInRankOrder(const std::vector<const float*>& sources, int64_t n, float* sums) {
  constexpr int64_t kTile = 256;
  float tile[kTile];
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t size = std::min(kTile, n - begin);
    for (size_t r = 0; r < sources.size(); ++r) {
      const float* const source = sources[r] + begin;
      for (int64_t i = 0; i < size; ++i) tile[i] = r == 0 ? source[i] : tile[i] + source[i];
    }
    std::copy_n(tile, size, sums + begin);
  }
}

}  // namespace lockstep::worker
