#include "chief/server/refusals.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

using Lines = std::vector<std::string>;

TEST_CASE("refusals: ten of a minute are named, and the rest of it counted when the next begins", "[server]") {
  Refusals refusals;
  const absl::Time begin = absl::UnixEpoch();
  for (int i = 0; i < 10; ++i) CHECK(refusals.Add(begin, "10.0.0.1:5", "why") == Lines{"refused 10.0.0.1:5: why"});
  for (int i = 0; i < 7; ++i) CHECK(refusals.Add(begin + absl::Seconds(59), "10.0.0.1:5", "why").empty());

  CHECK(refusals.Add(begin + absl::Seconds(60), "10.0.0.2:5", "too") ==
        Lines{"refused 7 callers more in that minute", "refused 10.0.0.2:5: too"});
  CHECK(refusals.Add(begin + absl::Seconds(130), "10.0.0.3:5", "too") == Lines{"refused 10.0.0.3:5: too"});
  CHECK(refusals.total() == 19);
}

}  // namespace
}  // namespace lockstep::chief
