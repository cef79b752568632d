// Reductions over any dimensions, and MaskedSum. Floating sums and products are gathered in double: the conversion
// hides behind the memory, and short sums that cancel keep their digits.
#include <limits>
#include <type_traits>

#include "common/math/math.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/kernels/cuda/families.h"
#include "worker/kernels/cuda/integer_elements.h"
#include "worker/kernels/cuda/row_kernels.h"
#include "worker/kernels/reduction/reduction.h"

namespace lockstep::device::cuda {
namespace {

RowPlan PlanOf(const ReduceAttributes& attributes, const Shape& shape) {
  const Shape kept = KeptShape(attributes, shape);
  std::vector<bool> walked(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) walked[d] = kept[d] != shape[d];
  return PlanRows(shape, walked);
}

// Wraps around, as Plus does.
LS_HD double Times(double a, double b) { return a * b; }
LS_HD int64_t Times(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

// What is gathered for each result, from elements that were made double or int64_t.
struct SumOf {
  template <typename Elements>
  LS_HD static int First(const Elements&) {
    return 0;
  }
  template <typename Value>
  LS_HD static Value Term(Value x) {
    return x;
  }
  template <typename Value>
  LS_HD static Value Join(Value a, Value b) {
    return Plus(a, b);
  }
};
struct SumOfMagnitudes : SumOf {
  template <typename Value>
  LS_HD static Value Term(Value x) {
    return x < 0 ? Times(x, Value(-1)) : x;
  }
};
struct SumOfSquares : SumOf {
  template <typename Value>
  LS_HD static Value Term(Value x) {
    return Times(x, x);
  }
};
struct ProductFold : SumOf {
  template <typename Elements>
  LS_HD static int First(const Elements&) {
    return 1;
  }
  template <typename Value>
  LS_HD static Value Join(Value a, Value b) {
    return Times(a, b);
  }
};
template <bool kLargest>
struct ExtremeOf : SumOf {
  template <typename Elements>
  LS_HD static auto First(const Elements& x) {
    return kLargest ? x.lowest() : x.highest();
  }
  template <typename Value>
  LS_HD static Value Join(Value a, Value b) {
    return (kLargest ? b > a : b < a) || b != b ? b : a;
  }
};

// What is made of it.
struct Plain {
  template <typename Value>
  LS_HD static Value Of(Value value, int64_t) {
    return value;
  }
};
struct Divided {
  LS_HD static double Of(double value, int64_t count) { return value / static_cast<double>(count); }
  LS_HD static int64_t Of(int64_t value, int64_t count) { return value / count; }
};
struct Root {
  LS_HD static double Of(double value, int64_t) { return SquareRoot(value); }
};
struct Logarithm {
  LS_HD static double Of(double value, int64_t) { return Log(value); }
};

template <typename Elements, typename Gather, typename Finisher>
struct ReductionPlan {
  using Value = std::conditional_t<std::is_same_v<Elements, IntegerElements>, int64_t, double>;
  LS_HD Value First() const { return static_cast<Value>(Gather::First(x)); }
  LS_HD Value Take(Value value, const Cell& cell) const {
    return Gather::Join(value, Gather::Term(static_cast<Value>(x[cell.at])));
  }
  LS_HD Value Join(Value a, Value b) const { return Gather::Join(a, b); }
  LS_HD void Finish(int64_t row, Value value) const { y.Set(row, Finisher::Of(value, divisor)); }

  Elements x;
  Elements y;
  int64_t divisor;
};

// The sum of e^(x - largest): terms change their base when a larger element comes.
struct LogSumExp {
  struct Value {
    double largest;
    double sum;
  };
  LS_HD Value First() const { return {-std::numeric_limits<double>::infinity(), 0}; }
  LS_HD Value Take(Value value, const Cell& cell) const { return Join(value, {static_cast<double>(x[cell.at]), 1.0}); }
  LS_HD Value Join(const Value& a, const Value& b) const {
    const double largest = b.largest > a.largest || b.largest != b.largest ? b.largest : a.largest;
    const double base = Base(largest);
    // Where all are infinite the largest is the result, whatever the sum: an infinite one counts as e^(itself).
    return {largest, a.sum * Exp(a.largest - base) + b.sum * Exp(b.largest - base)};
  }
  LS_HD void Finish(int64_t row, const Value& value) const {
    y[row] = static_cast<float>(Base(value.largest) + Log(value.sum));
  }
  LS_HD static double Base(double largest) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return largest == kInfinity || largest == -kInfinity ? 0.0 : largest;
  }

  const float* x;
  float* y;
};

template <typename Elements, typename Gather, typename Finisher>
absl::Status Reduce(const DeviceCall& call, StreamHandle stream) {
  const RowPlan plan = PlanOf(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const int64_t divisor = plan.extent > 0 ? plan.extent : 1;
  const DType dtype = call.output_infos[0].dtype;
  const ReductionPlan<Elements, Gather, Finisher> body{{call.inputs[0], dtype}, {call.outputs[0], dtype}, divisor};
  return FoldRows(stream, plan, call.workspace, body);
}

absl::Status ReduceLogSumExp(const DeviceCall& call, StreamHandle stream) {
  const RowPlan plan = PlanOf(call.attrs<ReduceAttributes>(), call.in_shape(0));
  return FoldRows(stream, plan, call.workspace, LogSumExp{call.in<float>(0), call.out<float>(0)});
}

template <typename Elements>
OwnFunction Reducer(OpType op, const RowPlan& plan) {
  // Every body but LogSumExp's gathers 8 bytes.
  const size_t bytes = FoldBytes<ReductionPlan<Elements, SumOf, Plain>>(plan);
  const auto fold = [bytes](LaunchFunction launch) { return OwnFunction{launch, "fold", bytes}; };
  constexpr bool kFloating = std::is_same_v<Elements, FloatElements>;
  switch (op) {
    case OpType::kReduceSum:
      return fold(&Reduce<Elements, SumOf, Plain>);
    case OpType::kReduceMean:
      return fold(&Reduce<Elements, SumOf, Divided>);
    case OpType::kReduceMax:
      return fold(&Reduce<Elements, ExtremeOf<true>, Plain>);
    case OpType::kReduceMin:
      return fold(&Reduce<Elements, ExtremeOf<false>, Plain>);
    case OpType::kReduceProd:
      return fold(&Reduce<Elements, ProductFold, Plain>);
    case OpType::kReduceL1:
      return fold(&Reduce<Elements, SumOfMagnitudes, Plain>);
    case OpType::kReduceSumSquare:
      return fold(&Reduce<Elements, SumOfSquares, Plain>);
    case OpType::kReduceL2:
      if constexpr (kFloating) return fold(&Reduce<Elements, SumOfSquares, Root>);
      return {.refusal = kOtherType};
    case OpType::kReduceLogSum:
      if constexpr (kFloating) return fold(&Reduce<Elements, SumOf, Logarithm>);
      return {.refusal = kOtherType};
    case OpType::kReduceLogSumExp:
      if constexpr (kFloating) return {&ReduceLogSumExp, "fold", FoldBytes<LogSumExp>(plan)};
      return {.refusal = kOtherType};
    default:
      return {};
  }
}

// What gradients need.
OwnFunction Bf16Reducer(OpType op, const RowPlan& plan) {
  const size_t bytes = FoldBytes<ReductionPlan<Bf16Elements, SumOf, Plain>>(plan);
  if (op == OpType::kReduceSum) return {&Reduce<Bf16Elements, SumOf, Plain>, "fold", bytes};
  if (op == OpType::kReduceMean) return {&Reduce<Bf16Elements, SumOf, Divided>, "fold", bytes};
  return {.refusal = kOtherType};
}

// The sum of the elements whose row the mask holds; others are not read.
struct Masked {
  using Value = double;
  LS_HD double First() const { return 0; }
  LS_HD double Take(double sum, const Cell& cell) const {
    return mask[QuotientOf(cell.i, width)] == 0.0f ? sum : sum + static_cast<double>(values[cell.at]);
  }
  LS_HD double Join(double a, double b) const { return a + b; }
  LS_HD void Finish(int64_t, double sum) const { out[0] = static_cast<float>(sum); }

  const float* values;
  const float* mask;
  float* out;
  FastDivide width;
};

absl::Status MaskedSum(const DeviceCall& call, StreamHandle stream) {
  const int64_t count = NumElements(call.in_shape(0));
  const int64_t width = count > 0 ? count / call.in_shape(1)[0] : 1;
  const Masked body{call.in<float>(0), call.in<float>(1), call.out<float>(0), FastDivide(width)};
  return FoldRows(stream, PlanAll(count), call.workspace, body);
}

}  // namespace

OwnFunction OwnReduction(const KernelRequest& request) {
  const DType dtype = request.outputs[0].dtype;
  if (request.node->op == OpType::kMaskedSum) {
    const RowPlan plan = PlanAll(NumElements(request.inputs[0].shape));
    if (!plan.served) return {.refusal = kOtherRows};
    if (dtype != DType::kF32) return {.refusal = kOtherType};
    return {&MaskedSum, "fold", FoldBytes<Masked>(plan)};
  }
  const auto* attributes = std::get_if<ReduceAttributes>(&request.node->attributes);
  if (attributes == nullptr) return {};
  const RowPlan plan = PlanOf(*attributes, request.inputs[0].shape);
  if (!plan.served) return {.refusal = kOtherRows};
  if (FloatElements::Serves(dtype)) return Reducer<FloatElements>(request.node->op, plan);
  if (Bf16Elements::Serves(dtype)) return Bf16Reducer(request.node->op, plan);
  if (IntegerElements::Serves(dtype)) return Reducer<IntegerElements>(request.node->op, plan);
  return {.refusal = kOtherType};
}

}  // namespace lockstep::device::cuda
