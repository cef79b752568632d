#include "worker/collectives/completion.h"

#include <catch2/catch.hpp>

#include "worker/device/device_lost.h"

namespace lockstep::worker {
namespace {

TEST_CASE("completion: an abort carries what its cause carries", "[collectives]") {
  const absl::Status lost = device::MarkDeviceLost(absl::InternalError("an illegal memory access"));

  const absl::Status aborted = AsAborted(Blame(lost, 2));
  const absl::Status said = AsAborted(aborted, "bucket 3: an illegal memory access");

  for (const absl::Status& status : {aborted, said}) {
    CHECK(absl::IsAborted(status));
    CHECK(device::IsDeviceLost(status));
    CHECK(BlamedRank(status) == 2);
  }
  CHECK(aborted.message() == "an illegal memory access");
  CHECK(said.message() == "bucket 3: an illegal memory access");
}

TEST_CASE("completion: an abort without a cause is one too, and blames nobody", "[collectives]") {
  const absl::Status aborted = AsAborted(absl::OkStatus());

  CHECK(aborted == absl::AbortedError("aborted"));
  CHECK(BlamedRank(aborted) == std::nullopt);
}

}  // namespace
}  // namespace lockstep::worker
