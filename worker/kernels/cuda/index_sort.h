// The indices of a gather or scatter in the order of what they pick, so that whoever adds up or overwrites finds all
// that belongs to one slot side by side, in the order in which the indices stand: without atomics, and without looking
// at slots that nobody picks.
//
// A radix sort from the lowest digit on, eight bits at a time. Each block takes one piece of the keys, and each thread
// one value of the digit: it counts those in the piece, and later moves them to their places, in order.
//
// Threading: as device.h.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_INDEX_SORT_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_INDEX_SORT_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/device/cuda/runtime/runtime.h"
#include "worker/kernels/cuda/pick_map.h"

namespace lockstep::device::cuda {

// Rows by ascending slots, those of one slot in ascending order. `outside` stands for the slot of a row without one,
// and comes last.
struct SortedRows {
  const uint32_t* slots = nullptr;
  const uint32_t* rows = nullptr;
  int64_t count = 0;
  uint32_t outside = 0;

  // Whether any row lies outside. REQUIRES: count > 0.
  LS_HD bool any_outside() const { return slots[count - 1] == outside; }
  LS_HD bool begins(int64_t i) const { return i == 0 || slots[i - 1] != slots[i]; }
  LS_HD bool ends(int64_t i) const { return i + 1 == count || slots[i + 1] != slots[i]; }
};

// Bytes of workspace for SortRows.
size_t SortRowsBytes(int64_t rows);

// Queues the sort; the result lies in the workspace. REQUIRES: picks.fits(), and picks.rows() > 0.
absl::StatusOr<SortedRows> SortRows(StreamHandle stream, const PickMap& picks, std::byte* workspace);

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_INDEX_SORT_H_
