#include "worker/data/npy_header.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<absl::string_view> TypeName(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kU8:
      return "|u1";
    case DType::kI8:
      return "|i1";
    case DType::kU16:
      return "<u2";
    case DType::kI16:
      return "<i2";
    case DType::kU32:
      return "<u4";
    case DType::kI32:
      return "<i4";
    case DType::kU64:
      return "<u8";
    case DType::kI64:
      return "<i8";
    case DType::kF16:
      return "<f2";
    case DType::kF32:
      return "<f4";
    case DType::kF64:
      return "<f8";
    default:
      return absl::UnimplementedError(absl::StrCat("NumPy has no type for elements of ", DTypeName(dtype)));
  }
}

}  // namespace

absl::StatusOr<std::string> NpyHeader(DType dtype, const Shape& shape) {
  constexpr size_t kAlignment = 64;
  LS_ASSIGN_OR_RETURN(const absl::string_view type, TypeName(dtype));
  // A tuple of one ends with a comma.
  std::string text = absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': (",
                                  absl::StrJoin(shape, ", "), shape.size() == 1 ? "," : "", "), }");
  const std::string magic("\x93NUMPY\x01\x00", 8);
  const size_t unpadded = magic.size() + sizeof(uint16_t) + text.size() + 1;
  text.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  text.push_back('\n');
  return absl::StrCat(magic, std::string{static_cast<char>(text.size() & 255), static_cast<char>(text.size() >> 8)},
                      text);
}

}  // namespace lockstep::worker
