// A worker and a command line that are 240 ms of round trip away from their chief, on real processes.
#include "common/net/delaying_proxy.h"
#include "common/net/rpc.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

TEST_CASE("slow link: a worker far from its chief joins, saves and finishes, and the chief can be asked", "[e2e]") {
  const std::string directory = TempPath("far");
  Watched chief("far", {"chief", kJob, "--dir", directory, "--expected-workers", "1"}, Settings());
  chief.WaitFor("listening on");
  std::string line;
  std::getline(std::ifstream(directory + "/chief/address"), line);
  const absl::StatusOr<HostPort> place = ParseHostPort(line);
  REQUIRE(place.ok());
  const DelayingProxy link(place->port, absl::Milliseconds(120));
  const std::string token = directory + "/chief/token";

  const Result status = Run({"status", "--chief", link.address(), "--token-file", token});
  CHECK(status.code == kExitDone);
  const Result worker = Run({"worker", "--chief", link.address(), "--token-file", token});

  INFO(worker.output);
  CHECK(worker.code == kExitDone);
  CHECK(chief.End() == Ended{});
  CHECK(Digest(directory) == Digest(FinishedJob()));
}

}  // namespace
}  // namespace lockstep::e2e
