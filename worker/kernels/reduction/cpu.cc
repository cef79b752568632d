#include <algorithm>
#include <limits>

#include "common/math/math.h"
#include "worker/kernels/cpu/families.h"
#include "worker/kernels/cpu/lane_sum.h"
#include "worker/kernels/cpu/parallel.h"
#include "worker/kernels/reduction/cpu_groups.h"

namespace lockstep::device::cpu::LS_CODE {
namespace {

constexpr int64_t kGrain = kReductionGrain;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Columns side by side, at most kColumns, each in the order of the rows.
template <typename Value, typename Finish>
void ColumnSums(const float* x, float* y, const Groups& groups, int64_t rows, int64_t count, const Value& value,
                const Finish& finish) {
  double sums[kColumns] = {};
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x + groups.Offset(r, true);
    for (int64_t i = 0; i < count; ++i) sums[i] += value(double{row[i]});
  }
  for (int64_t i = 0; i < count; ++i) y[i] = static_cast<float>(finish(sums[i]));
}

// The sum that LaneSum gives of kLength elements, or of `length` <= kLength: without its empty lanes.
template <int64_t kLength, bool kWhole, typename Value>
[[gnu::always_inline]] inline double ShortSum(const float* x, int64_t length, const Value& value) {
  double lanes[kLength];
  for (int64_t l = 0; l < kLength; ++l) lanes[l] = kWhole || l < length ? value(double{x[l]}) : 0.0;
  for (int64_t half = kLength / 2; half > 0; half /= 2) {
    for (int64_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
  }
  return lanes[0] + 0.0;  // with an empty lane there is no -0
}

// Rows of at most kLength elements, one behind the other.
template <int64_t kLength, typename Value, typename Finish>
void ShortRows(const float* x, float* y, int64_t results, int64_t length, const Value& value, const Finish& finish) {
  ParallelFor(results, kGrain / kLength, [&](int64_t begin, int64_t end) {
    if (length == kLength) {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = static_cast<float>(finish(ShortSum<kLength, true>(x + i * kLength, length, value)));
      }
    } else {
      for (int64_t i = begin; i < end; ++i) {
        y[i] = static_cast<float>(finish(ShortSum<kLength, false>(x + i * length, length, value)));
      }
    }
  });
}

constexpr int64_t kShortRow = 16;

// finish(the sum of value(x))
template <typename Value, typename Finish>
void Reduce(const HostCall& call, const Value& value, const Finish& finish) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  const int64_t rows = groups.Count(true), innermost = groups.innermost();
  if (groups.reduces_innermost() && rows == 1 && innermost <= kShortRow) {
    const int64_t results = groups.Count(false);
    if (innermost <= 2) return ShortRows<2>(x, y, results, innermost, value, finish);
    if (innermost <= 4) return ShortRows<4>(x, y, results, innermost, value, finish);
    if (innermost <= 8) return ShortRows<8>(x, y, results, innermost, value, finish);
    return ShortRows<kShortRow>(x, y, results, innermost, value, finish);
  }
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    if (groups.reduces_innermost()) {
      double sum = 0;
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x + base + groups.Offset(r, true);
        sum += LaneSum(innermost, [row, value](int64_t i) { return value(double{row[i]}); });
      }
      y[first] = static_cast<float>(finish(sum));
    } else {
      ColumnSums(x + base, y + first, groups, rows, count, value, finish);
    }
  });
}

void Mean(const HostCall& call) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const int64_t rows = groups.Count(true);
  const auto divisor = static_cast<double>(groups.reduces_innermost() ? rows * groups.innermost() : rows);
  Reduce(
      call, [](double x) { return x; }, [divisor](double sum) { return sum / divisor; });
}

void Product(const HostCall& call) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    double products[kColumns];
    std::fill_n(products, count, 1.0);
    FoldElements(groups, base, count, products, [x](double product, int64_t i, int64_t) { return product * x[i]; });
    for (int64_t k = 0; k < count; ++k) y[first + k] = static_cast<float>(products[k]);
  });
}

template <typename T>
void IntegerSum(const HostCall& call) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const T* x = call.in<T>(0);
  T* y = call.out<T>(0);
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    uint64_t sums[kColumns] = {};
    FoldElements(groups, base, count, sums,
                 [x](uint64_t sum, int64_t i, int64_t) { return sum + static_cast<uint64_t>(x[i]); });
    for (int64_t k = 0; k < count; ++k) y[first + k] = static_cast<T>(sums[k]);
  });
}

// The larger, or the smaller; a NaN stays.
template <bool kLargest>
float Extreme(float best, float x) {
  const bool better = kLargest ? x > best : x < best;
  return better || x != x ? x : best;
}

template <bool kLargest>
float RowExtreme(const float* x, int64_t count, float best) {
  float lanes[kLanes];
  for (float& lane : lanes) lane = best;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = Extreme<kLargest>(lanes[l], x[i + l]);
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[l] = Extreme<kLargest>(lanes[l], x[i]);
  for (const float lane : lanes) best = Extreme<kLargest>(best, lane);
  return best;
}

template <bool kLargest>
void ReduceExtreme(const HostCall& call) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  const int64_t kept = groups.Count(false), rows = groups.Count(true), innermost = groups.innermost();
  const int64_t width = groups.reduces_innermost() ? 1 : innermost;
  const int64_t grain = kGrain / std::clamp<int64_t>(rows * innermost, 1, kGrain);
  ParallelFor(kept, grain, [&](int64_t begin, int64_t end) {
    std::fill(y + begin * width, y + end * width, kLargest ? -kInfinity : kInfinity);
    for (int64_t o = begin; o < end; ++o) {
      float* to = y + o * width;
      for (int64_t r = 0; r < rows; ++r) {
        const float* row = x + groups.Offset(o, false) + groups.Offset(r, true);
        if (groups.reduces_innermost()) {
          *to = RowExtreme<kLargest>(row, innermost, *to);
        } else {
          for (int64_t i = 0; i < innermost; ++i) to[i] = Extreme<kLargest>(to[i], row[i]);
        }
      }
    }
  });
}

// What LogSumExp takes away from the elements: the largest, or nothing where that one is infinite.
float Level(float largest) { return largest == kInfinity || largest == -kInfinity ? 0.0f : largest; }

// The sum of exp(x - level) over a row, some elements at a time: exponentials first, which become vector code that way.
double SumOfExponentials(const float* x, int64_t count, float level) {
  constexpr int64_t kAtOnce = 512;
  float exponentials[kAtOnce];
  double sum = 0;
  for (int64_t first = 0; first < count; first += kAtOnce) {
    const int64_t part = std::min(kAtOnce, count - first);
    for (int64_t i = 0; i < part; ++i) exponentials[i] = Exp(x[first + i] - level);
    const float* of = exponentials;
    sum += LaneSum(part, [of](int64_t i) { return double{of[i]}; });
  }
  return sum;
}

void LogSumExp(const HostCall& call) {
  const Groups groups(call.attrs<ReduceAttributes>(), call.in_shape(0));
  const float* x = call.in<float>(0);
  float* y = call.out<float>(0);
  const int64_t rows = groups.Count(true), innermost = groups.innermost();
  ForResults(groups, [&](int64_t base, int64_t first, int64_t count) {
    float level[kColumns];
    double sums[kColumns] = {};
    std::fill_n(level, count, -kInfinity);
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + base + groups.Offset(r, true);
      if (groups.reduces_innermost()) level[0] = RowExtreme<true>(row, innermost, level[0]);
      for (int64_t k = 0; k < count && !groups.reduces_innermost(); ++k) level[k] = Extreme<true>(level[k], row[k]);
    }
    for (int64_t k = 0; k < count; ++k) level[k] = Level(level[k]);
    for (int64_t r = 0; r < rows; ++r) {
      const float* row = x + base + groups.Offset(r, true);
      if (groups.reduces_innermost()) {
        sums[0] += SumOfExponentials(row, innermost, level[0]);
      } else {
        for (int64_t k = 0; k < count; ++k) sums[k] += double{Exp(row[k] - level[k])};
      }
    }
    for (int64_t k = 0; k < count; ++k) y[first + k] = static_cast<float>(level[k] + Log(sums[k]));
  });
}

HostFunction FunctionOf(OpType op) {
  switch (op) {
    case OpType::kReduceSum:
      return [](const HostCall& call) {
        Reduce(
            call, [](double x) { return x; }, [](double sum) { return sum; });
      };
    case OpType::kReduceMean:
      return &Mean;
    case OpType::kReduceL1:
      return [](const HostCall& call) {
        Reduce(
            call, [](double x) { return x < 0 ? -x : x; }, [](double sum) { return sum; });
      };
    case OpType::kReduceSumSquare:
      return [](const HostCall& call) {
        Reduce(
            call, [](double x) { return x * x; }, [](double sum) { return sum; });
      };
    case OpType::kReduceL2:
      return [](const HostCall& call) {
        Reduce(
            call, [](double x) { return x * x; }, [](double sum) { return SquareRoot(sum); });
      };
    case OpType::kReduceLogSum:
      return [](const HostCall& call) {
        Reduce(
            call, [](double x) { return x; }, [](double sum) { return Log(sum); });
      };
    case OpType::kReduceLogSumExp:
      return &LogSumExp;
    case OpType::kReduceProd:
      return &Product;
    case OpType::kReduceMax:
      return &ReduceExtreme<true>;
    case OpType::kReduceMin:
      return &ReduceExtreme<false>;
    default:
      return nullptr;
  }
}

}  // namespace

OwnFunction OwnReduction(const KernelRequest& request) {
  const HostFunction function = FunctionOf(request.node->op);
  if (function == nullptr) return {};
  if (!Groups(AttributesOf<ReduceAttributes>(request), request.inputs[0].shape).fits())
    return {.refusal = kManyDimensions};
  return {function, "own:reduce"};
}

OwnFunction OwnIntegerSum(const KernelRequest& request) {
  const DType dtype = request.inputs[0].dtype;
  if (request.node->op != OpType::kReduceSum || (dtype != DType::kI64 && dtype != DType::kI32)) return {};
  if (!Groups(AttributesOf<ReduceAttributes>(request), request.inputs[0].shape).fits())
    return {.refusal = kManyDimensions};
  return {dtype == DType::kI64 ? &IntegerSum<int64_t> : &IntegerSum<int32_t>, "own:reduce"};
}

}  // namespace lockstep::device::cpu::LS_CODE
