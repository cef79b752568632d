#include "deploy/cli/progress_line.h"

#include <catch2/catch.hpp>
#include <sstream>
#include <string>

namespace lockstep::cli {
namespace {

constexpr uint64_t kMiB = 1 << 20;
const absl::Time kNow = absl::UnixEpoch();

TEST_CASE("progress: the line says how much is done, changes now and then, and goes away", "[cli]") {
  std::ostringstream out;
  {
    ProgressLine line("step 7", 4 * kMiB, out, /*shown=*/true);
    line.Advance(kMiB, kNow);
    CHECK(out.str() == "\r\x1b[Kstep 7   25 %  1.0 of 4.0 MiB");
    out.str("");
    line.Advance(kMiB, kNow + absl::Milliseconds(100));
    CHECK(out.str().empty());
    line.Advance(2 * kMiB, kNow + absl::Milliseconds(200));
    CHECK(out.str() == "\r\x1b[Kstep 7  100 %  4.0 of 4.0 MiB");
    out.str("");
  }
  CHECK(out.str() == "\r\x1b[K");
}

TEST_CASE("progress: nothing is written where nobody looks", "[cli]") {
  std::ostringstream out;
  ProgressLine("step 7", kMiB, out, /*shown=*/false).Advance(kMiB, kNow);
  CHECK(out.str().empty());
}

}  // namespace
}  // namespace lockstep::cli
