#include "common/tensor/dtype.h"

#include "common/status/check.h"

namespace lockstep {
namespace {

struct Row {
  DType dtype;
  int size;
  bool floating;
  absl::string_view name;
};

constexpr Row kRows[] = {
    {DType::kBool, 1, false, "BOOL"},     {DType::kU8, 1, false, "U8"},         {DType::kI8, 1, false, "I8"},
    {DType::kF8E5M2, 1, true, "F8_E5M2"}, {DType::kF8E4M3, 1, true, "F8_E4M3"}, {DType::kI16, 2, false, "I16"},
    {DType::kU16, 2, false, "U16"},       {DType::kF16, 2, true, "F16"},        {DType::kBF16, 2, true, "BF16"},
    {DType::kI32, 4, false, "I32"},       {DType::kU32, 4, false, "U32"},       {DType::kF32, 4, true, "F32"},
    {DType::kF64, 8, true, "F64"},        {DType::kI64, 8, false, "I64"},       {DType::kU64, 8, false, "U64"},
};

const Row& RowOf(DType dtype) {
  for (const Row& row : kRows) {
    if (row.dtype == dtype) return row;
  }
  LS_CHECK(false, "a DType is one of its enumerators");
  return kRows[0];
}

}  // namespace

int DTypeSize(DType dtype) { return RowOf(dtype).size; }

absl::string_view DTypeName(DType dtype) { return RowOf(dtype).name; }

bool IsFloating(DType dtype) { return RowOf(dtype).floating; }

std::optional<DType> ParseDType(absl::string_view name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

std::optional<DType> DTypeFromNumber(int number) {
  for (const Row& row : kRows) {
    if (static_cast<int>(row.dtype) == number) return row.dtype;
  }
  return std::nullopt;
}

}  // namespace lockstep
