// Sorts the indices of a gather or scatter by the slot that they address, stably. A kernel that adds to or overwrites
// slots then finds all rows of a slot adjacent and in index order: it needs no atomics, its sums have a fixed order,
// and it touches only slots that are addressed.
//
// The algorithm is a least-significant-digit radix sort with digits of eight bits. Each block takes one piece of the
// keys and each thread one value of the digit: it counts that value in the piece, and then moves those keys in order.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_INDEX_SORT_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_INDEX_SORT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/kernels/cuda/pick_map.h"

namespace lockstep::device::cuda {

// Rows sorted by slot; rows of one slot ascend. Rows with an invalid index have the slot `outside` and come last.
struct SortedRows {
  const uint32_t* slots = nullptr;
  const uint32_t* rows = nullptr;
  int64_t count = 0;
  uint32_t outside = 0;

  // Whether any row has an invalid index. REQUIRES: count > 0.
  LS_HD bool any_outside() const { return slots[count - 1] == outside; }
  LS_HD bool begins(int64_t i) const { return i == 0 || slots[i - 1] != slots[i]; }
  LS_HD bool ends(int64_t i) const { return i + 1 == count || slots[i + 1] != slots[i]; }
};

// The bytes of workspace that SortRows needs.
size_t SortRowsBytes(int64_t rows);

// Queues the sort; the result is in the workspace. REQUIRES: picks.fits(), picks.rows() > 0.
absl::StatusOr<SortedRows> SortRows(StreamHandle stream, const PickMap& picks, std::byte* workspace);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_INDEX_SORT_H_
