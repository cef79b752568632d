// ONNX's numbers of element types, which attributes such as Cast's `to` hold.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_ONNX_DTYPE_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_ONNX_DTYPE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/tensor/dtype.h"

namespace lockstep {

struct OnnxDType {
  int64_t number;
  DType dtype;
};

// The types that the op set computes with.
inline constexpr OnnxDType kOnnxDTypes[] = {
    {1, DType::kF32},
    {2, DType::kU8},
    {3, DType::kI8},
    {6, DType::kI32},
    {7, DType::kI64},
    {9, DType::kBool},
    {11, DType::kF64},
    {16, DType::kBF16},
    // Of these only Cast computes; others move them.
    {4, DType::kU16},
    {5, DType::kI16},
    {12, DType::kU32},
};

// Integers that Cast alone takes; it makes of them, and makes them of, F32, I32 and I64.
constexpr bool IsRareInteger(DType dtype) {
  return dtype == DType::kU16 || dtype == DType::kI16 || dtype == DType::kU32;
}
constexpr bool CastsToRareInteger(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kI32 || dtype == DType::kI64;
}
// The type that has all their numbers.
constexpr DType WideInteger(DType rare) { return rare == DType::kU32 ? DType::kI64 : DType::kI32; }

// InvalidArgument for a number that is not in kOnnxDTypes, and for BF16: the job's train.precision, not the model,
// decides where BF16 is used.
inline absl::StatusOr<DType> DTypeFromOnnx(int64_t number) {
  for (const OnnxDType& type : kOnnxDTypes) {
    if (type.number == number && type.dtype != DType::kBF16) return type.dtype;
  }
  if (number == 16) {
    return absl::InvalidArgumentError(
        "it is BF16. Export the model in float32, without autocast, and set train.precision");
  }
  return absl::InvalidArgumentError(
      absl::StrCat("ONNX's element type number ", number,
                   " is none that the op set computes with: BOOL, U8, I8, U16, I16, U32, I32, I64, F32 and F64 are"));
}

// REQUIRES: the type is in kOnnxDTypes.
inline int64_t OnnxNumber(DType dtype) {
  for (const OnnxDType& type : kOnnxDTypes) {
    if (type.dtype == dtype) return type.number;
  }
  return 0;
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_ONNX_DTYPE_H_
