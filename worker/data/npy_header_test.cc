#include "worker/data/npy_header.h"

#include <catch2/catch.hpp>

#include "worker/data/array_file.h"
#include "worker/data/test_files.h"

namespace lockstep::worker {
namespace {

TEST_CASE("npy header: what it begins is read back as it was", "[data]") {
  const TestFiles files;
  const DType dtype = GENERATE(DType::kU8, DType::kI32, DType::kI64, DType::kF32, DType::kF64);
  const Shape shape = GENERATE(Shape{3}, Shape{3, 2}, Shape{2, 3, 4});

  const auto header = NpyHeader(dtype, shape);
  REQUIRE(header.status() == absl::OkStatus());
  const std::string elements(static_cast<size_t>(NumElements(shape) * DTypeSize(dtype)), '\1');
  const auto read = ReadArrayFile(files.Write("x.npy", *header + elements), job::DataFiles::FORMAT_NPY, 1 << 20,
                                  /*pulse=*/nullptr);

  CHECK(header->size() % 64 == 0);
  REQUIRE(read.status() == absl::OkStatus());
  CHECK(read->array.dtype() == dtype);
  CHECK(read->array.shape() == shape);
}

TEST_CASE("npy header: elements that NumPy has not are refused by name", "[data]") {
  const auto header = NpyHeader(DType::kBF16, {1});

  CHECK(header.status().code() == absl::StatusCode::kUnimplemented);
  CHECK_THAT(std::string(header.status().message()), Catch::Contains("BF16"));
}

}  // namespace
}  // namespace lockstep::worker
