#include "common/tensor/tensor.h"

#include <catch2/catch.hpp>

#include "common/tensor/dtype.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

TEST_CASE("dtype: every safetensors type has a size and a name that parses back", "[tensor]") {
  const struct {
    DType dtype;
    const char* name;
    int size;
  } rows[] = {{DType::kBool, "BOOL", 1},      {DType::kU8, "U8", 1},          {DType::kI8, "I8", 1},
              {DType::kF8E5M2, "F8_E5M2", 1}, {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kI16, "I16", 2},
              {DType::kU16, "U16", 2},        {DType::kF16, "F16", 2},        {DType::kBF16, "BF16", 2},
              {DType::kI32, "I32", 4},        {DType::kU32, "U32", 4},        {DType::kF32, "F32", 4},
              {DType::kF64, "F64", 8},        {DType::kI64, "I64", 8},        {DType::kU64, "U64", 8}};
  for (const auto& row : rows) {
    CHECK(DTypeSize(row.dtype) == row.size);
    CHECK(DTypeName(row.dtype) == row.name);
    CHECK(ParseDType(row.name) == row.dtype);
    CHECK(DTypeFromNumber(static_cast<int>(row.dtype)) == row.dtype);
  }
  CHECK_FALSE(ParseDType("F31").has_value());
  CHECK_FALSE(DTypeFromNumber(0).has_value());
}

TEST_CASE("shape: products see overflow and negative dimensions", "[tensor]") {
  CHECK(*CheckedNumElements({}) == 1);
  CHECK(*CheckedNumElements({2, 3, 4}) == 24);
  CHECK(*CheckedNumElements({3, 0, 4}) == 0);
  CHECK_FALSE(CheckedNumElements({int64_t{1} << 40, 0, int64_t{1} << 40}).ok());
  CHECK_FALSE(CheckedNumElements({int64_t{1} << 32, int64_t{1} << 31}).ok());
  CHECK_FALSE(CheckedNumElements({2, -1}).ok());
  CHECK(*CheckedByteSize(DType::kF64, {3}) == 24);
  CHECK_FALSE(CheckedByteSize(DType::kF64, {int64_t{1} << 60}).ok());
  CHECK(ShapeString({64, 1}) == "[64, 1]");
  CHECK(RowMajorStrides({2, 3, 4}) == std::vector<int64_t>{12, 4, 1});
}

TEST_CASE("tensor: const elements of a bool tensor are its elements", "[tensor]") {
  const Tensor tensor = Tensor::Of<bool>({3}, {true, false, true});

  const absl::Span<const bool> elements = tensor.elements<bool>();

  REQUIRE(elements.size() == 3);
  CHECK(reinterpret_cast<const std::byte*>(elements.data()) == tensor.data());
  CHECK((elements[0] && !elements[1] && elements[2]));
}

TEST_CASE("tensor: memory is aligned, zeroed and copied deeply", "[tensor]") {
  Tensor tensor = *Tensor::Create(DType::kF32, {3, 5});
  CHECK(reinterpret_cast<uintptr_t>(tensor.data()) % Tensor::kAlignment == 0);
  for (const float value : tensor.elements<float>()) CHECK(value == 0.0f);

  Tensor copy = tensor.Clone();
  CHECK(BitEqual(tensor, copy));
  copy.elements<float>()[7] = 1.0f;

  CHECK_FALSE(BitEqual(tensor, copy));
  CHECK(tensor.elements<float>()[7] == 0.0f);
  CHECK_FALSE(BitEqual(Tensor::Zeros(DType::kF32, {2}), Tensor::Zeros(DType::kI32, {2})));
  CHECK(BitEqual(Tensor::Zeros(DType::kF32, {0, 4}), Tensor::Zeros(DType::kF32, {0, 4})));
  CHECK_FALSE(Tensor::Create(DType::kF32, {int64_t{1} << 62}).ok());
}

}  // namespace
}  // namespace lockstep
