#include <cstdint>
#include <limits>

#include "worker/kernels/reduction/reduction.h"
#include "worker/kernels/reference/families.h"

namespace lockstep::device::reference {
namespace {

// Folds every element into its result in 64 bits. Unsigned arithmetic wraps around where signed overflow is undefined.
template <typename T, typename Fold>
void GatherIntegers(const HostCall& call, int64_t first, Fold fold) {
  const Shape& shape = call.in_shape(0);
  const Shape kept = KeptShape(call.attrs<ReduceAttributes>(), shape);
  auto* gathered = reinterpret_cast<int64_t*>(call.workspace);
  const int64_t results = NumElements(kept);
  const int64_t count = NumElements(shape);
  for (int64_t i = 0; i < results; ++i) gathered[i] = first;
  BroadcastCursor of_result(shape, kept);
  for (int64_t i = 0; i < count; ++i, of_result.Next()) {
    int64_t& result = gathered[of_result.index()];
    result = fold(result, static_cast<int64_t>(call.in<T>(0)[i]));
  }
  const int64_t divisor = call.op == OpType::kReduceMean && results > 0 && count > 0 ? count / results : 1;
  for (int64_t i = 0; i < results; ++i) call.out<T>(0)[i] = static_cast<T>(gathered[i] / divisor);
}

int64_t Sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }
int64_t IntegerProduct(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}

}  // namespace

template <typename T>
HostFunction IntegerReduceFunction(OpType type) {
  switch (type) {
    case OpType::kReduceSum:
    case OpType::kReduceMean:
      return [](const HostCall& call) { GatherIntegers<T>(call, 0, Sum); };
    case OpType::kReduceProd:
      return [](const HostCall& call) { GatherIntegers<T>(call, 1, IntegerProduct); };
    case OpType::kReduceL1:
      return [](const HostCall& call) {
        GatherIntegers<T>(call, 0, [](int64_t sum, int64_t x) { return Sum(sum, x < 0 ? IntegerProduct(x, -1) : x); });
      };
    case OpType::kReduceSumSquare:
      return [](const HostCall& call) {
        GatherIntegers<T>(call, 0, [](int64_t sum, int64_t x) { return Sum(sum, IntegerProduct(x, x)); });
      };
    case OpType::kReduceMax:
      return [](const HostCall& call) {
        GatherIntegers<T>(call, std::numeric_limits<T>::lowest(), [](int64_t a, int64_t x) { return a > x ? a : x; });
      };
    case OpType::kReduceMin:
      return [](const HostCall& call) {
        GatherIntegers<T>(call, std::numeric_limits<T>::max(), [](int64_t a, int64_t x) { return a < x ? a : x; });
      };
    default:
      return nullptr;
  }
}

template HostFunction IntegerReduceFunction<int64_t>(OpType);
template HostFunction IntegerReduceFunction<int32_t>(OpType);
template HostFunction IntegerReduceFunction<int8_t>(OpType);
template HostFunction IntegerReduceFunction<uint8_t>(OpType);

}  // namespace lockstep::device::reference
