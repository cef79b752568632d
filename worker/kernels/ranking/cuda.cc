// Ops along an axis that compare elements, and sums that run along one.
#include <type_traits>

#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/integer_elements.h"
#include "worker/kernels/cuda/row_kernels.h"

namespace lockstep::device::cuda {
namespace {

// An element and where it stands in its row; index -1: none.
template <typename Elements>
struct Ranked {
  using Number = decltype(std::declval<Elements>()[0]);
  Number value;
  // As wide as the number, so that no bits of the struct are unused.
  std::conditional_t<sizeof(Number) == sizeof(int64_t), int64_t, int> index;
};

// The one of two that an order prefers; where it prefers none, the one that stands first, or last.
template <typename Elements, typename Prefers>
LS_HD Ranked<Elements> Better(const Ranked<Elements>& a, const Ranked<Elements>& b, bool last, Prefers prefers) {
  if (a.index < 0) return b;
  if (b.index < 0) return a;
  if (prefers(a.value, b.value)) return a;
  if (prefers(b.value, a.value)) return b;
  return (a.index < b.index) != last ? a : b;
}

// ArgMax and ArgMin prefer a NaN to every number.
template <typename Elements>
struct Arg {
  using Value = Ranked<Elements>;
  LS_HD Value First() const { return {0, -1}; }
  LS_HD Value Take(const Value& value, const Cell& cell) const { return Join(value, {x[cell.at], cell.i}); }
  LS_HD Value Join(const Value& a, const Value& b) const {
    return Better<Elements>(a, b, last, [this](auto l, auto r) {
      if (l != l) return r == r;
      return largest ? l > r : l < r;
    });
  }
  LS_HD void Finish(int64_t row, const Value& value) const { out[row] = value.index; }

  Elements x;
  int64_t* out;
  bool largest;
  bool last;
};

template <typename Elements>
absl::Status LaunchArg(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<ArgAttributes>();
  const Arg<Elements> body{{call.inputs[0], call.input_infos[0].dtype},
                           call.out<int64_t>(0),
                           call.op == OpType::kArgMax,
                           attributes.select_last_index};
  return FoldRows(stream, PlanAxis(call.in_shape(0), attributes.axis), call.workspace, body);
}

// One after the other: the first in the order among those that stand behind the last one found.
template <typename Elements>
struct TopKRow {
  using Value = Ranked<Elements>;
  using Number = typename Value::Number;

  // A NaN is larger than every number.
  LS_HD bool Before(Number a, Number b) const {
    const bool a_nan = a != a;
    const bool b_nan = b != b;
    if (a_nan || b_nan) return largest ? a_nan && !b_nan : b_nan && !a_nan;
    return largest ? a > b : a < b;
  }
  LS_HD Value Join(const Value& a, const Value& b) const {
    return Better<Elements>(a, b, false, [this](Number l, Number r) { return Before(l, r); });
  }
  template <TeamKind kKind>
  __device__ void operator()(const Team<kKind>& team) const {
    Value found{0, -1};
    for (int rank = 0; rank < k; ++rank) {
      Value next{0, -1};
      team.Each([&](const Cell& cell) {
        const Number value = x[cell.at];
        const bool behind =
            found.index < 0 || Before(found.value, value) || (cell.i > found.index && !Before(value, found.value));
        if (behind) next = Join(next, {value, cell.i});
      });
      found = team.FoldLanes(next, [this](const Value& a, const Value& b) { return Join(a, b); });
      if (!team.leads()) continue;
      const int64_t at = rows.Offset(static_cast<int>(team.row())) + rank * stride;
      values.Set(at, found.value);
      if (indices != nullptr) indices[at] = found.index;
    }
  }

  Elements x;
  Elements values;
  int64_t* indices;  // or null
  Nest rows;         // of the results
  int64_t stride;    // from result to result of a row
  int k;
  bool largest;
};

template <typename Elements>
absl::Status LaunchTopK(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<TopKAttributes>();
  const RowPlan results = PlanAxis(call.out_shape(0), attributes.axis);
  const DType dtype = call.output_infos[0].dtype;
  const TopKRow<Elements> body{
      {call.inputs[0], dtype},     {call.outputs[0], dtype},       call.out<int64_t>(1), results.rows,
      results.elements.strides[0], static_cast<int>(attributes.k), attributes.largest};
  return ForEachRow(stream, PlanAxis(call.in_shape(0), attributes.axis), body);
}

// A thread walks along its row, or a warp 32 elements at a time.
template <typename Elements>
struct CumSumRow {
  using Sum = std::conditional_t<std::is_same_v<Elements, FloatElements>, double, int64_t>;

  LS_HD int Place(int i, int extent) const { return reverse ? extent - 1 - i : i; }

  __device__ void operator()(const Team<TeamKind::kThread>& team) const {
    Sum total = 0;
    for (int i = 0; i < team.extent(); ++i) {
      const int64_t at = team.At(Place(i, team.extent()));
      const Sum before = total;
      total = Plus(total, static_cast<Sum>(x[at]));
      y.Set(at, exclusive ? before : total);
    }
  }

  __device__ void operator()(const Team<TeamKind::kWarp>& team) const {
    const int lane = team.lane();
    Sum carried = 0;
    for (int first = 0; first < team.extent(); first += kWarp) {
      const int i = first + lane;
      const bool inside = i < team.extent();
      const int64_t at = inside ? team.At(Place(i, team.extent())) : 0;
      const Sum own = inside ? static_cast<Sum>(x[at]) : Sum(0);
      Sum sum = own;
      LS_UNROLL
      for (int distance = 1; distance < kWarp; distance *= 2) {
        const Sum before = __shfl_sync(kFullMask, sum, lane < distance ? lane : lane - distance);
        if (lane >= distance) sum = Plus(before, sum);
      }
      // What came in front of this element; that of the first lane is all that was carried.
      const Sum in_front = __shfl_sync(kFullMask, sum, lane == 0 ? 0 : lane - 1);
      if (inside) y.Set(at, exclusive ? (lane == 0 ? carried : Plus(carried, in_front)) : Plus(carried, sum));
      carried = Plus(carried, __shfl_sync(kFullMask, sum, kWarp - 1));
    }
  }

  Elements x;
  Elements y;
  bool exclusive;
  bool reverse;
};

template <typename Elements>
absl::Status LaunchCumSum(const DeviceCall& call, StreamHandle stream) {
  const auto& attributes = call.attrs<CumSumAttributes>();
  const RowPlan plan = PlanAxis(call.in_shape(0), attributes.axis);
  if (plan.row_count == 0) return absl::OkStatus();
  const DType dtype = call.output_infos[0].dtype;
  const CumSumRow<Elements> body{
      {call.inputs[0], dtype}, {call.outputs[0], dtype}, attributes.exclusive, attributes.reverse};
  if (plan.kind == TeamKind::kThread || plan.kind == TeamKind::kColumn) {
    return LaunchTeams<TeamKind::kThread>(stream, plan, body);
  }
  return LaunchTeams<TeamKind::kWarp>(stream, plan, body);
}

template <typename Elements>
OwnFunction Ranking(const KernelRequest& request) {
  const Shape& shape = request.inputs[0].shape;
  switch (request.node->op) {
    case OpType::kArgMax:
    case OpType::kArgMin: {
      const RowPlan plan = PlanAxis(shape, AttributesOf<ArgAttributes>(request).axis);
      if (!plan.served) return {.refusal = kOtherRows};
      return {&LaunchArg<Elements>, "fold", FoldBytes<Arg<Elements>>(plan)};
    }
    case OpType::kTopK:
      if (!PlanAxis(shape, AttributesOf<TopKAttributes>(request).axis).served) return {.refusal = kOtherRows};
      return {&LaunchTopK<Elements>, "rows"};
    case OpType::kCumSum:
      if (!PlanAxis(shape, AttributesOf<CumSumAttributes>(request).axis).served) return {.refusal = kOtherRows};
      return {&LaunchCumSum<Elements>, "rows"};
    default:
      return {};
  }
}

}  // namespace

OwnFunction OwnRanking(const KernelRequest& request) {
  if (request.inputs.empty()) return {};
  const DType dtype = request.inputs[0].dtype;
  if (FloatElements::Serves(dtype)) return Ranking<FloatElements>(request);
  if (IntegerElements::Serves(dtype)) return Ranking<IntegerElements>(request);
  return Ranking<FloatElements>(request).launch == nullptr ? OwnFunction{} : OwnFunction{.refusal = kOtherType};
}

}  // namespace lockstep::device::cuda
