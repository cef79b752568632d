#include "deploy/cli/progress_line.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

namespace lockstep::cli {
namespace {

constexpr uint64_t kMiB = 1 << 20;

TEST_CASE("progress: the line says how much is done, changes now and then, and goes away", "[cli]") {
  std::ostringstream out;
  ManualClock clock(absl::UnixEpoch());
  {
    ProgressLine line("step 7", 4 * kMiB, out, clock, /*shown=*/true);
    line.Advance(kMiB);
    CHECK(out.str() == "\r\x1b[Kstep 7   25 %  1.0 of 4.0 MiB");
    out.str("");
    clock.Advance(absl::Milliseconds(100));
    line.Advance(kMiB);
    CHECK(out.str().empty());
    clock.Advance(absl::Milliseconds(100));
    line.Advance(2 * kMiB);
    CHECK(out.str() == "\r\x1b[Kstep 7  100 %  4.0 of 4.0 MiB");
    out.str("");
  }
  CHECK(out.str() == "\r\x1b[K");
}

TEST_CASE("progress: nothing is written where nobody looks", "[cli]") {
  std::ostringstream out;
  const ManualClock clock(absl::UnixEpoch());
  ProgressLine("step 7", kMiB, out, clock, /*shown=*/false).Advance(kMiB);
  CHECK(out.str().empty());
}

}  // namespace
}  // namespace lockstep::cli
