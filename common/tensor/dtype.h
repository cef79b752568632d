// Element types of tensors: exactly those of safetensors, so that every tensor of a job can be written to a checkpoint.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_TENSOR_DTYPE_H_
#define LOCKSTEP_COMMON_TENSOR_DTYPE_H_

#include <cstdint>
#include <optional>
#include <type_traits>

#include "absl/strings/string_view.h"

namespace lockstep {

// The numbers are stored in protos (metagraph, plans): never reuse or renumber them.
enum class DType : uint8_t {
  kBool = 1,
  kU8 = 2,
  kI8 = 3,
  kF8E5M2 = 4,
  kF8E4M3 = 5,
  kI16 = 6,
  kU16 = 7,
  kF16 = 8,
  kBF16 = 9,
  kI32 = 10,
  kU32 = 11,
  kF32 = 12,
  kF64 = 13,
  kI64 = 14,
  kU64 = 15,
};

// Bytes of one element.
int DTypeSize(DType dtype);

// The name in a safetensors header: "F32", "BF16", "F8_E4M3", ...
absl::string_view DTypeName(DType dtype);

// The inverse of DTypeName; nullopt for an unknown name.
std::optional<DType> ParseDType(absl::string_view name);

// The type stored under `number` in a proto; nullopt when there is none.
std::optional<DType> DTypeFromNumber(int number);

// True for the floating-point types.
bool IsFloating(DType dtype);

// The DType of a C++ element type.
template <typename T>
constexpr DType DTypeOf() {
  if constexpr (std::is_same_v<T, bool>)
    return DType::kBool;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kU8;
  else if constexpr (std::is_same_v<T, int8_t>)
    return DType::kI8;
  else if constexpr (std::is_same_v<T, int16_t>)
    return DType::kI16;
  else if constexpr (std::is_same_v<T, uint16_t>)
    return DType::kU16;
  else if constexpr (std::is_same_v<T, int32_t>)
    return DType::kI32;
  else if constexpr (std::is_same_v<T, uint32_t>)
    return DType::kU32;
  else if constexpr (std::is_same_v<T, float>)
    return DType::kF32;
  else if constexpr (std::is_same_v<T, double>)
    return DType::kF64;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kI64;
  else {
    static_assert(std::is_same_v<T, uint64_t>, "no DType for this C++ type");
    return DType::kU64;
  }
}

// Calls visit(T{}), where T is the C++ type of `dtype`, and returns true; false, and no call, when `dtype` is no
// integer.
template <typename Visitor>
constexpr bool VisitInteger(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::kU8:
      visit(uint8_t{});
      return true;
    case DType::kI8:
      visit(int8_t{});
      return true;
    case DType::kU16:
      visit(uint16_t{});
      return true;
    case DType::kI16:
      visit(int16_t{});
      return true;
    case DType::kU32:
      visit(uint32_t{});
      return true;
    case DType::kI32:
      visit(int32_t{});
      return true;
    case DType::kU64:
      visit(uint64_t{});
      return true;
    case DType::kI64:
      visit(int64_t{});
      return true;
    default:
      return false;
  }
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_TENSOR_DTYPE_H_
