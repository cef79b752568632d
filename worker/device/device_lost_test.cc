#include "worker/device/device_lost.h"

#include <catch2/catch.hpp>

namespace lockstep::device {
namespace {

TEST_CASE("device lost: the mark stays with an error, and with what it is said in other words", "[device]") {
  const absl::Status error = MarkDeviceLost(absl::InternalError("an illegal memory access"));

  CHECK(IsDeviceLost(error));
  CHECK(error.message() == "an illegal memory access");
  CHECK(IsDeviceLost(MarkedAs(error, absl::InternalError("the update failed"))));
  CHECK_FALSE(IsDeviceLost(MarkedAs(absl::InternalError("other"), absl::InternalError("the update failed"))));
  CHECK_FALSE(IsDeviceLost(absl::OkStatus()));
}

}  // namespace
}  // namespace lockstep::device
