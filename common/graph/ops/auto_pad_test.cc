// What a reader fills in for windows.
#include "common/graph/ops/auto_pad.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;
using Ints = std::vector<int64_t>;

Ints PadsOf(OpType op, const Shape& input, RawAttributes raw) {
  REQUIRE(FillWindow(op, input, nullptr, &raw).ok());
  CHECK(raw.count("auto_pad") == 0);
  return raw.count("pads") == 0 ? Ints{} : std::get<Ints>(raw.at("pads"));
}

TEST_CASE("auto pad: the odd element lies where the name says", "[ops]") {
  const RawAttribute four = Ints{4};
  CHECK(PadsOf(OpType::kConv, {1, 1, 9}, {{"kernel_shape", four}, {"auto_pad", std::string("SAME_UPPER")}}) ==
        Ints{1, 2});
  CHECK(PadsOf(OpType::kConv, {1, 1, 9}, {{"kernel_shape", four}, {"auto_pad", std::string("SAME_LOWER")}}) ==
        Ints{2, 1});
  CHECK(PadsOf(OpType::kMaxPool, {1, 1, 9},
               {{"kernel_shape", four}, {"strides", Ints{4}}, {"auto_pad", std::string("SAME_UPPER")}}) == Ints{1, 2});
  CHECK(PadsOf(OpType::kAveragePool, {1, 1, 9}, {{"kernel_shape", four}, {"auto_pad", std::string("VALID")}}) ==
        Ints{0, 0});
  CHECK(PadsOf(OpType::kConv, {1, 1, 9}, {{"kernel_shape", four}, {"pads", Ints{1, 0}}}) == Ints{1, 0});
}

TEST_CASE("auto pad: a transposed convolution is padded down to the shape that is asked for", "[ops]") {
  const RawAttributes window = {{"kernel_shape", Ints{3}}, {"strides", Ints{2}}};
  RawAttributes same = window;
  same["auto_pad"] = std::string("SAME_UPPER");
  CHECK(PadsOf(OpType::kConvTranspose, {1, 1, 3}, same) == Ints{0, 1});
  RawAttributes shape = window;
  shape["output_shape"] = Ints{4};
  CHECK(PadsOf(OpType::kConvTranspose, {1, 1, 3}, shape) == Ints{2, 1});
  // What the windows do not reach is padded behind.
  shape["output_shape"] = Ints{8};
  CHECK(PadsOf(OpType::kConvTranspose, {1, 1, 3}, shape) == Ints{0, 0});
  REQUIRE(FillWindow(OpType::kConvTranspose, {1, 1, 3}, nullptr, &shape).ok());
  CHECK(std::get<Ints>(shape.at("output_padding")) == Ints{1});
}

TEST_CASE("auto pad: the kernel's size comes from the weights", "[ops]") {
  RawAttributes raw;
  const Shape weights = {6, 2, 3, 5};
  REQUIRE(FillWindow(OpType::kConv, {1, 2, 9, 9}, &weights, &raw).ok());
  CHECK(std::get<Ints>(raw.at("kernel_shape")) == Ints{3, 5});
  raw["auto_pad"] = std::string("SAME");
  CHECK_THAT(std::string(FillWindow(OpType::kConv, {1, 2, 9, 9}, &weights, &raw).message()), Contains("'SAME'"));
}

}  // namespace
}  // namespace lockstep
