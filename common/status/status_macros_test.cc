#include "common/status/status_macros.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

absl::StatusOr<int> Half(int n) {
  if (n % 2 != 0) return absl::InvalidArgumentError("odd");
  return n / 2;
}

absl::StatusOr<int> Quarter(int n) {
  LS_ASSIGN_OR_RETURN(int half, Half(n));
  LS_ASSIGN_OR_RETURN(int quarter, Half(half));
  return quarter;
}

TEST_CASE("status: the first failure is returned and later steps do not run", "[status]") {
  CHECK(Quarter(8).value() == 2);
  CHECK(Quarter(6).status().message() == "odd");
  CHECK(Quarter(7).status().code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lockstep
