// Kernels over the rows of a RowPlan, in three forms. The computation is given as a body: a small struct of numbers and
// device addresses.
//
//   ForEachRow   calls body(team), where a team of threads has a whole row and may fold and write: softmax, layer norm
//   ForEachCell  element by element, without a fold: body.Load(cell), then body.Store(cell, loaded)
//   FoldRows     one value per row; long rows are folded in parts and joined in a second stage: sums, maxima
//
// Invariants
//   * The order of every fold depends on the plan alone: a lane's elements in index order, then the team's fixed tree,
//     then the parts in a fixed tree.
//
// Threading: called by the device's owner thread.
#ifndef LOCKSTEP_WORKER_KERNELS_CUDA_ROW_KERNELS_H_
#define LOCKSTEP_WORKER_KERNELS_CUDA_ROW_KERNELS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/launch.h"
#include "worker/kernels/cuda/block_reduce.h"
#include "worker/kernels/cuda/row_plan.h"

namespace lockstep::device::cuda {

// Element i of a row, at offset `at` of the tensor.
struct Cell {
  int64_t row;
  int i;
  int64_t at;
};

// The most elements of a row that a lane holds in registers (Held).
inline constexpr int kHeldByThread = 16;
inline constexpr int kHeldByLane = 32;

// Threads per block: 256, or 4 warps.
constexpr int TeamBlock(TeamKind kind) { return kind == TeamKind::kWarp ? 4 * kWarp : 256; }

// The calling thread's view of its team, which has a row or a part of one.
template <TeamKind kKind>
class Team {
 public:
  static constexpr int kLanes = TeamSize(kKind);
  static constexpr int kHeld = kKind == TeamKind::kThread ? kHeldByThread : kHeldByLane;

  __device__ explicit Team(const RowPlan& plan) : elements_(plan.elements) {
    int64_t row = 0;
    if (kKind == TeamKind::kThread) row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (kKind == TeamKind::kColumn) row = int64_t{blockIdx.x} * kWarp + threadIdx.x % kWarp;
    if (kKind == TeamKind::kWarp) row = int64_t{blockIdx.x} * (blockDim.x / kWarp) + threadIdx.x / kWarp;
    if (kKind == TeamKind::kBlock) row = blockIdx.x;
    active_ = row < plan.row_count;
    row_ = active_ ? row : 0;
    base_ = plan.rows.Offset(static_cast<int>(row_));
    part_ = static_cast<int>(blockIdx.y);
    begin_ = part_ * plan.chunk;
    end_ = active_ ? (plan.extent - begin_ < plan.chunk ? plan.extent : begin_ + plan.chunk) : begin_;
  }

  // False for a team without a row: it takes part in folds, has no elements, and must not write.
  __device__ bool active() const { return active_; }
  // True for the one thread that writes the per-row results.
  __device__ bool leads() const { return active_ && lane() == 0; }
  __device__ int64_t row() const { return row_; }
  __device__ int part() const { return part_; }
  __device__ int extent() const { return end_ - begin_; }
  __device__ int64_t At(int i) const { return base_ + elements_.Offset(i); }
  // The same where the elements of a row are adjacent.
  __device__ int64_t AtAdjacent(int i) const { return base_ + i; }

  __device__ int lane() const {
    if (kKind == TeamKind::kThread) return 0;
    if (kKind == TeamKind::kColumn) return static_cast<int>(threadIdx.x / kWarp);
    if (kKind == TeamKind::kWarp) return static_cast<int>(threadIdx.x % kWarp);
    return static_cast<int>(threadIdx.x);
  }

  // Calls visit(cell) for every element of this lane, in order. `visit` must not write anything that a later call
  // reads.
  template <typename Visit>
  __device__ void Each(Visit visit) const {
    LS_UNROLL_4
    for (int i = begin_ + lane(); i < end_; i += kLanes) visit(Cell{row_, i, At(i)});
  }

  // The same in two steps, so that four loads are in flight at a time although stores follow.
  template <typename Load, typename Store>
  __device__ void Each(Load load, Store store) const {
    constexpr int kAtOnce = 4;
    for (int first = begin_ + lane(); first < end_; first += kAtOnce * kLanes) {
      decltype(load(Cell())) loaded[kAtOnce];
      LS_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = first + k * kLanes;
        if (i < end_) loaded[k] = load(Cell{row_, i, At(i)});
      }
      LS_UNROLL
      for (int k = 0; k < kAtOnce; ++k) {
        const int i = first + k * kLanes;
        if (i < end_) store(Cell{row_, i, At(i)}, loaded[k]);
      }
    }
  }

  // Folds the values of the team's lanes in a fixed tree. Every thread of the block makes the call; if teams are warps,
  // every thread of the warp.
  template <typename T, typename Fold>
  __device__ T FoldLanes(T value, Fold fold) const {
    if constexpr (kKind == TeamKind::kWarp) return WarpFold(value, fold);
    if constexpr (kKind == TeamKind::kBlock) return BlockFold<kLanes>(value, fold);
    if constexpr (kKind == TeamKind::kColumn) {
      __shared__ uint64_t words[(kLanes * kWarp * sizeof(T) + 7) / 8];
      T* of_lane = reinterpret_cast<T*>(words);
      const unsigned column = threadIdx.x % kWarp;
      of_lane[threadIdx.x] = value;
      __syncthreads();
      value = of_lane[column];
      LS_UNROLL
      for (unsigned l = 1; l < kLanes; ++l) value = fold(value, of_lane[l * kWarp + column]);
      __syncthreads();
    }
    return value;
  }

  template <typename T>
  __device__ T Sum(T value) const {
    return FoldLanes(value, [](T a, T b) { return a + b; });
  }

 private:
  const Nest& elements_;
  int64_t row_;
  int64_t base_;
  int part_;
  int begin_;
  int end_;
  bool active_;
};

// A row for bodies that read it more than once: kept in registers with kHold, else read from memory each time. Elements
// are visited in index order.
template <bool kHold, typename T, typename TeamType>
class Held {
 public:
  // load(cell) -> T
  template <typename Load>
  __device__ Held(const TeamType& team, Load load) : team_(team) {
    if constexpr (kHold) {
      LS_UNROLL
      for (int k = 0; k < TeamType::kHeld; ++k) {
        const int i = team.lane() + k * TeamType::kLanes;
        if (i >= team.extent()) break;
        values_[k] = load(Cell{team.row(), i, team.AtAdjacent(i)});
      }
    }
  }

  // Calls visit(cell, value) for every element of this lane. `load` is the constructor's.
  template <typename Load, typename Visit>
  __device__ void Each(Load load, Visit visit) const {
    if constexpr (kHold) {
      LS_UNROLL
      for (int k = 0; k < TeamType::kHeld; ++k) {
        const int i = team_.lane() + k * TeamType::kLanes;
        if (i >= team_.extent()) break;
        visit(Cell{team_.row(), i, team_.AtAdjacent(i)}, values_[k]);
      }
    } else {
      team_.Each(load, visit);
    }
  }

 private:
  const TeamType& team_;
  T values_[kHold ? TeamType::kHeld : 1];
};

// Whether the lanes of a team can hold a row in registers.
inline bool IsHeld(const RowPlan& plan) {
  return plan.extent <= TeamSize(plan.kind) * (plan.kind == TeamKind::kThread ? kHeldByThread : kHeldByLane);
}

// --- launches ---

template <TeamKind kKind, typename Body>
__global__ void __launch_bounds__(TeamBlock(kKind)) TeamKernel(RowPlan plan, Body body) {
  const Team<kKind> team(plan);
  // A fold within a warp needs no other warps; other folds need all threads of the block.
  if (kKind == TeamKind::kWarp && !team.active()) return;
  body(team);
}

template <TeamKind kKind, typename Body>
absl::Status LaunchTeams(StreamHandle stream, const RowPlan& plan, Body body) {
  const int64_t rows_per_block = kKind == TeamKind::kColumn ? kWarp : TeamBlock(kKind) / TeamSize(kKind);
  const auto blocks = static_cast<unsigned>((plan.row_count + rows_per_block - 1) / rows_per_block);
  const LaunchShape shape{.blocks = {blocks, static_cast<unsigned>(plan.parts)},
                          .threads = {static_cast<unsigned>(TeamBlock(kKind))}};
  return Launch(stream, shape, &TeamKernel<kKind, Body>, plan, body);
}

// Queues body(team) for every row, or every part of one. REQUIRES: plan.served; without kColumns, the elements of a row
// are adjacent.
template <bool kColumns = true, typename Body>
absl::Status ForEachRow(StreamHandle stream, const RowPlan& plan, Body body) {
  if (plan.row_count == 0) return absl::OkStatus();
  switch (plan.kind) {
    case TeamKind::kThread:
      return LaunchTeams<TeamKind::kThread>(stream, plan, body);
    case TeamKind::kColumn:
      if constexpr (kColumns) return LaunchTeams<TeamKind::kColumn>(stream, plan, body);
      break;
    case TeamKind::kWarp:
      return LaunchTeams<TeamKind::kWarp>(stream, plan, body);
    case TeamKind::kBlock:
      break;
  }
  return LaunchTeams<TeamKind::kBlock>(stream, plan, body);
}

template <typename Body>
struct CellBody {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    team.Each([&](const Cell& cell) { return body.Load(cell); },
              [&](const Cell& cell, const auto& loaded) { body.Store(cell, loaded); });
  }
  Body body;
};

// Queues body.Load and body.Store for every element. REQUIRES: plan.served.
template <typename Body>
absl::Status ForEachCell(StreamHandle stream, const RowPlan& plan, Body body) {
  return ForEachRow(stream, InParts(plan, 4), CellBody<Body>{body});
}

// A body of FoldRows has a trivial type Value and the functions
//   Value First() const                           the value of no elements
//   Value Take(Value, const Cell&) const          adds one element
//   Value Join(Value, Value) const                joins the values of two sets of elements
//   void Finish(int64_t row, const Value&) const  writes the result of a row
template <typename Body>
struct FoldBody {
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    using Value = typename Body::Value;
    Value value = body.First();
    team.Each([&](const Cell& cell) { value = body.Take(value, cell); });
    value = team.FoldLanes(value, [this](const Value& a, const Value& b) { return body.Join(a, b); });
    if (!team.leads()) return;
    if (parts == 1) {
      body.Finish(team.row(), value);
    } else {
      of_part[team.row() * parts + team.part()] = value;
    }
  }
  Body body;
  int parts;
  typename Body::Value* of_part;  // [row][part]
};

// The second stage: a warp joins the parts of a row.
template <typename Body>
struct JoinBody {
  __device__ void operator()(const Team<TeamKind::kWarp>& team) const {
    using Value = typename Body::Value;
    Value value = body.First();
    team.Each([&](const Cell& cell) { value = body.Join(value, of_part[cell.at]); });
    value = team.FoldLanes(value, [this](const Value& a, const Value& b) { return body.Join(a, b); });
    if (team.leads()) body.Finish(team.row(), value);
  }
  Body body;
  const typename Body::Value* of_part;
};

// The bytes of workspace that FoldRows needs for `plan`, before InParts.
template <typename Body>
size_t FoldBytes(const RowPlan& plan) {
  const RowPlan in_parts = InParts(plan);
  return in_parts.parts == 1 ? 0
                             : static_cast<size_t>(in_parts.row_count) * static_cast<size_t>(in_parts.parts) *
                                   sizeof(typename Body::Value);
}

// The bytes of workspace for one T per row, rounded up to keep the next part aligned.
template <typename T>
size_t RowBytes(const RowPlan& plan) {
  return (static_cast<size_t>(plan.row_count) * sizeof(T) + 255) / 256 * 256;
}

// Queues the fold of every row. REQUIRES: plan.served; `workspace` has FoldBytes(plan) bytes.
template <typename Body>
absl::Status FoldRows(StreamHandle stream, const RowPlan& plan, std::byte* workspace, Body body) {
  if (plan.row_count == 0) return absl::OkStatus();
  const RowPlan in_parts = InParts(plan);
  auto* of_part = reinterpret_cast<typename Body::Value*>(workspace);
  LS_RETURN_IF_ERROR(ForEachRow(stream, in_parts, FoldBody<Body>{body, in_parts.parts, of_part}));
  if (in_parts.parts == 1) return absl::OkStatus();
  return LaunchTeams<TeamKind::kWarp>(stream, PlanTail({plan.row_count, in_parts.parts}, 1),
                                      JoinBody<Body>{body, of_part});
}

}  // namespace lockstep::device::cuda

#endif  // LOCKSTEP_WORKER_KERNELS_CUDA_ROW_KERNELS_H_
