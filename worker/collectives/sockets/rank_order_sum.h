// Float sums whose bits are a function of the number of ranks.
//
// Threading: immutable (a free function).
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_RANK_ORDER_SUM_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_RANK_ORDER_SUM_H_

#include <cstdint>
#include <vector>

namespace lockstep::worker {

// sums[i] = the sum of sources[rank][i], added in rank order, for the first `n` elements. `sums` may be one of the
// sources.
void SumInRankOrder(const std::vector<const float*>& sources, int64_t n, float* sums);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_RANK_ORDER_SUM_H_
