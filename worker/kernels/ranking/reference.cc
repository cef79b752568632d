#include <cmath>
#include <cstring>
#include <type_traits>

#include "worker/kernels/picks.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

template <typename T>
bool IsNan(T value) {
  if constexpr (std::is_floating_point_v<T>) return std::isnan(value);
  return false;
}

// Whether ArgMax or ArgMin prefers a: a NaN before every number.
template <typename T>
bool Wins(T a, T b, bool largest) {
  if (IsNan(a)) return !IsNan(b);
  return largest ? a > b : a < b;
}

template <typename T>
void Arg(const HostCall& call) {
  const auto& arg = call.attrs<ArgAttributes>();
  const bool largest = call.op == OpType::kArgMax;
  const AxisExtents e(arg.axis, call.in_shape(0));
  for (int64_t line = 0; line < e.outer * e.inner; ++line) {
    const T* x = call.in<T>(0) + line / e.inner * e.extent * e.inner + line % e.inner;
    int64_t best = 0;
    for (int64_t i = 1; i < e.extent; ++i) {
      const T value = x[i * e.inner];
      const T kept = x[best * e.inner];
      if (Wins(value, kept, largest) || (arg.select_last_index && !Wins(kept, value, largest))) best = i;
    }
    call.out<int64_t>(0)[line] = best;
  }
}

// Whether a stands before b in the order of TopK, in which a NaN is larger than every number.
template <typename T>
bool Before(T a, T b, bool largest) {
  if (IsNan(a) || IsNan(b)) return largest ? IsNan(a) && !IsNan(b) : IsNan(b) && !IsNan(a);
  return largest ? a > b : a < b;
}

// One after the other: the first in the order among those that stand behind the last one found.
template <typename T>
void TopK(const HostCall& call) {
  const auto& top = call.attrs<TopKAttributes>();
  const AxisExtents e(top.axis, call.in_shape(0));
  T* values = call.out<T>(0);
  int64_t* indices = call.out<int64_t>(1);
  for (int64_t line = 0; line < e.outer * e.inner; ++line) {
    const T* x = call.in<T>(0) + line / e.inner * e.extent * e.inner + line % e.inner;
    int64_t last = -1;
    for (int64_t k = 0; k < top.k; ++k) {
      int64_t next = -1;
      for (int64_t i = 0; i < e.extent; ++i) {
        const T value = x[i * e.inner];
        const bool behind = last < 0 || Before(x[last * e.inner], value, top.largest) ||
                            (i > last && !Before(value, x[last * e.inner], top.largest));
        if (behind && (next < 0 || Before(value, x[next * e.inner], top.largest))) next = i;
      }
      const int64_t at = (line / e.inner * top.k + k) * e.inner + line % e.inner;
      values[at] = x[next * e.inner];
      if (indices != nullptr) indices[at] = next;
      last = next;
    }
  }
}

template <typename T>
void CumSum(const HostCall& call) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  const auto& sum = call.attrs<CumSumAttributes>();
  const AxisExtents e(sum.axis, call.in_shape(0));
  for (int64_t line = 0; line < e.outer * e.inner; ++line) {
    const int64_t begin = line / e.inner * e.extent * e.inner + line % e.inner;
    Sum total = 0;
    for (int64_t i = 0; i < e.extent; ++i) {
      const int64_t at = begin + (sum.reverse ? e.extent - 1 - i : i) * e.inner;
      if (sum.exclusive) call.out<T>(0)[at] = static_cast<T>(total);
      total += static_cast<Sum>(call.in<T>(0)[at]);
      if (!sum.exclusive) call.out<T>(0)[at] = static_cast<T>(total);
    }
  }
}

}  // namespace

template <typename T>
HostFunction RankingFunction(OpType type) {
  switch (type) {
    case OpType::kArgMax:
    case OpType::kArgMin:
      return &Arg<T>;
    case OpType::kTopK:
      return &TopK<T>;
    case OpType::kCumSum:
      return &CumSum<T>;
    default:
      return nullptr;
  }
}

template HostFunction RankingFunction<float>(OpType);
template HostFunction RankingFunction<double>(OpType);
template HostFunction RankingFunction<int64_t>(OpType);
template HostFunction RankingFunction<int32_t>(OpType);
template HostFunction RankingFunction<int8_t>(OpType);
template HostFunction RankingFunction<uint8_t>(OpType);

}  // namespace lockstep::device::reference
