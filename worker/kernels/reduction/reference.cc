#include <limits>

#include "common/math/math.h"
#include "worker/kernels/reduction/reduction.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// Where every element of X belongs among the results.
struct ReducedAxes {
  ReducedAxes(const ReduceAttributes& attributes, const Shape& x)
      : shape(x), kept(KeptShape(attributes, x)), results(NumElements(kept)), count(NumElements(x)) {}

  // Calls visit(x_index, result_index) for every element, in index order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    BroadcastCursor result(shape, kept);
    for (int64_t i = 0; i < count; ++i, result.Next()) visit(i, result.index());
  }

  const Shape& shape;
  Shape kept;
  int64_t results;
  int64_t count;
};

double Magnitude(double x) { return x < 0 ? -x : x; }

// Folds every element into the workspace's double of its result, which begins as `first`; `finish` makes the result.
template <typename T, typename Fold, typename Finish>
void Gather(const HostCall& call, double first, Fold fold, Finish finish) {
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  const ReducedAxes reduction(call.attrs<ReduceAttributes>(), call.in_shape(0));
  auto* gathered = reinterpret_cast<double*>(call.workspace);
  for (int64_t i = 0; i < reduction.results; ++i) gathered[i] = first;
  reduction.ForEach([&](int64_t i, int64_t k) { gathered[k] = fold(gathered[k], static_cast<double>(x[i])); });
  for (int64_t i = 0; i < reduction.results; ++i) y[i] = static_cast<T>(finish(gathered[i]));
}

template <typename T, typename Fold>
void Gather(const HostCall& call, double first, Fold fold) {
  Gather<T>(call, first, fold, [](double value) { return value; });
}

template <typename T>
void Mean(const HostCall& call) {
  const ReducedAxes reduction(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const auto divisor = reduction.results > 0 ? static_cast<double>(reduction.count / reduction.results) : 1.0;
  Gather<T>(
      call, 0, [](double sum, double x) { return sum + x; }, [divisor](double sum) { return sum / divisor; });
}

template <typename T>
void Max(const HostCall& call) {
  const auto fold = [](double best, double x) { return x > best || x != x ? x : best; };
  Gather<T>(call, -std::numeric_limits<double>::infinity(), fold);
}

template <typename T>
void Min(const HostCall& call) {
  const auto fold = [](double best, double x) { return x < best || x != x ? x : best; };
  Gather<T>(call, std::numeric_limits<double>::infinity(), fold);
}

// The results themselves lie in the first half of the workspace as the largest elements, sums in the second.
template <typename T>
void LogSumExp(const HostCall& call) {
  const T* x = call.in<T>(0);
  const ReducedAxes reduction(call.attrs<ReduceAttributes>(), call.in_shape(0));
  auto* largest = reinterpret_cast<double*>(call.workspace);
  double* sums = largest + reduction.results;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < reduction.results; ++i) {
    largest[i] = -kInfinity;
    sums[i] = 0;
  }
  reduction.ForEach([&](int64_t i, int64_t k) {
    const double value = x[i];
    if (value > largest[k] || value != value) largest[k] = value;
  });
  // Where all are infinite the largest is the result, whatever the sum.
  const auto base = [&](int64_t k) { return largest[k] == kInfinity || largest[k] == -kInfinity ? 0.0 : largest[k]; };
  reduction.ForEach([&](int64_t i, int64_t k) { sums[k] += Exp(x[i] - base(k)); });
  for (int64_t i = 0; i < reduction.results; ++i) call.out<T>(0)[i] = static_cast<T>(base(i) + Log(sums[i]));
}

// dX[i] = slope(x[i], y, dy) with y and dy of the element's result.
template <typename T, typename Slope>
void Gradient(const HostCall& call, Slope slope) {
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const T* y = call.in<T>(2);
  const ReducedAxes reduction(call.attrs<ReduceGradAttributes>().reduce, call.in_shape(1));
  reduction.ForEach([&](int64_t i, int64_t k) {
    call.out<T>(0)[i] = static_cast<T>(slope(double{x[i]}, double{y[k]}, double{dy[k]}));
  });
}

// Shared equally among the elements that equal the result, or given to the first of them.
template <typename T>
void ExtremeGradient(const HostCall& call, bool first_only) {
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const T* y = call.in<T>(2);
  const ReducedAxes reduction(call.attrs<ReduceGradAttributes>().reduce, call.in_shape(1));
  auto* equal = reinterpret_cast<double*>(call.workspace);
  for (int64_t i = 0; i < reduction.results; ++i) equal[i] = 0;
  const auto wins = [&](int64_t i, int64_t k) { return x[i] == y[k] || (x[i] != x[i] && y[k] != y[k]); };
  if (first_only) {
    reduction.ForEach([&](int64_t i, int64_t k) {
      const bool takes = wins(i, k) && equal[k] == 0;
      if (takes) equal[k] = 1;
      call.out<T>(0)[i] = takes ? dy[k] : T(0);
    });
    return;
  }
  reduction.ForEach([&](int64_t i, int64_t k) { equal[k] += wins(i, k) ? 1.0 : 0.0; });
  reduction.ForEach(
      [&](int64_t i, int64_t k) { call.out<T>(0)[i] = wins(i, k) ? static_cast<T>(dy[k] / equal[k]) : T(0); });
}

// dY times the product of the others: from the product of what is not zero and the number of zeros.
template <typename T>
void ProductGradient(const HostCall& call) {
  const T* dy = call.in<T>(0);
  const T* x = call.in<T>(1);
  const ReducedAxes reduction(call.attrs<ReduceGradAttributes>().reduce, call.in_shape(1));
  auto* product = reinterpret_cast<double*>(call.workspace);
  double* zeros = product + reduction.results;
  for (int64_t i = 0; i < reduction.results; ++i) {
    product[i] = 1;
    zeros[i] = 0;
  }
  reduction.ForEach([&](int64_t i, int64_t k) {
    if (x[i] == T(0)) zeros[k] += 1;
    if (x[i] != T(0)) product[k] *= x[i];
  });
  reduction.ForEach([&](int64_t i, int64_t k) {
    const double others = x[i] == T(0) ? (zeros[k] == 1 ? product[k] : 0.0) : zeros[k] == 0 ? product[k] / x[i] : 0.0;
    call.out<T>(0)[i] = static_cast<T>(dy[k] * others);
  });
}

template <typename T>
void ReduceGrad(const HostCall& call) {
  switch (call.attrs<ReduceGradAttributes>().of) {
    case ReduceKind::kMax:
    case ReduceKind::kMin:
      return ExtremeGradient<T>(call, false);
    case ReduceKind::kFirstMax:
      return ExtremeGradient<T>(call, true);
    case ReduceKind::kProd:
      return ProductGradient<T>(call);
    case ReduceKind::kL1:
      return Gradient<T>(call, [](double x, double, double dy) { return x > 0 ? dy : x < 0 ? -dy : x * dy; });
    case ReduceKind::kL2:
      return Gradient<T>(call, [](double x, double y, double dy) { return y == 0 ? 0.0 : dy * x / y; });
    case ReduceKind::kLogSum:
      return Gradient<T>(call, [](double, double y, double dy) { return dy / Exp(y); });
    case ReduceKind::kLogSumExp:
      return Gradient<T>(call, [](double x, double y, double dy) { return x == y ? dy : dy * Exp(x - y); });
    case ReduceKind::kSumSquare:
      return Gradient<T>(call, [](double x, double, double dy) { return 2 * dy * x; });
  }
}

template <typename T>
void MaskedSum(const HostCall& call) {
  const T* values = call.in<T>(0);
  const T* mask = call.in<T>(1);
  const int64_t rows = call.in_shape(1)[0];
  const int64_t width = rows > 0 ? NumElements(call.in_shape(0)) / rows : 0;
  double sum = 0;
  for (int64_t row = 0; row < rows; ++row) {
    if (mask[row] == T(0)) continue;
    for (int64_t i = 0; i < width; ++i) sum += values[row * width + i];
  }
  call.out<T>(0)[0] = static_cast<T>(sum);
}

}  // namespace

template <typename T>
HostFunction ReduceFunction(OpType type) {
  switch (type) {
    case OpType::kReduceSum:
      return [](const HostCall& call) { Gather<T>(call, 0, [](double sum, double x) { return sum + x; }); };
    case OpType::kReduceMean:
      return &Mean<T>;
    case OpType::kReduceMax:
      return &Max<T>;
    case OpType::kReduceMin:
      return &Min<T>;
    case OpType::kReduceProd:
      return [](const HostCall& call) { Gather<T>(call, 1, [](double product, double x) { return product * x; }); };
    case OpType::kReduceL1:
      return [](const HostCall& call) { Gather<T>(call, 0, [](double sum, double x) { return sum + Magnitude(x); }); };
    case OpType::kReduceSumSquare:
      return [](const HostCall& call) { Gather<T>(call, 0, [](double sum, double x) { return sum + x * x; }); };
    case OpType::kReduceL2:
      return [](const HostCall& call) {
        Gather<T>(
            call, 0, [](double sum, double x) { return sum + x * x; }, [](double sum) { return SquareRoot(sum); });
      };
    case OpType::kReduceLogSum:
      return [](const HostCall& call) {
        Gather<T>(
            call, 0, [](double sum, double x) { return sum + x; }, [](double sum) { return Log(sum); });
      };
    case OpType::kReduceLogSumExp:
      return &LogSumExp<T>;
    case OpType::kReduceGrad:
      return &ReduceGrad<T>;
    case OpType::kMaskedSum:
      return &MaskedSum<T>;
    default:
      return nullptr;
  }
}

template HostFunction ReduceFunction<float>(OpType);
template HostFunction ReduceFunction<double>(OpType);

}  // namespace lockstep::device::reference
