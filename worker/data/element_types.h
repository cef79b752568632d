// Maps the element types of data files to C++ types.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_ELEMENT_TYPES_H_
#define LOCKSTEP_WORKER_DATA_ELEMENT_TYPES_H_

#include <cstdint>
#include <type_traits>

#include "common/status/check.h"
#include "common/tensor/dtype.h"
#include "common/tensor/half.h"

namespace lockstep::worker {

// An element of F16, which is a float wherever it is used.
struct Half {
  operator float() const { return HalfToFloat(bits); }
  uint16_t bits = 0;
};

// The type in which elements of T are compared.
template <typename T>
using NumberOf = std::conditional_t<std::is_same_v<T, Half>, float, T>;

// Calls visit(T{}), where T is the C++ type of `dtype`.
template <typename Visitor>
void WithElementType(DType dtype, Visitor visit) {
  if (VisitInteger(dtype, visit)) return;
  switch (dtype) {
    case DType::kF16:
      return visit(Half{});
    case DType::kF32:
      return visit(float{});
    case DType::kF64:
      return visit(double{});
    default:
      LS_CHECK(false, "data files hold no other type");
  }
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_ELEMENT_TYPES_H_
