#include "deploy/cli/time_limit.h"

#include <catch2/catch.hpp>

namespace lockstep::cli {
namespace {

using Catch::Contains;

// Two hours east of Greenwich, where it is half past twelve.
const absl::TimeZone kZone = absl::FixedTimeZone(2 * 60 * 60);
const absl::Time kStarted = absl::FromCivil(absl::CivilSecond(2026, 11, 23, 12, 30, 0), kZone);

TEST_CASE("time limit: a span, a time of day, and a date with a time", "[cli]") {
  const auto parse = [](absl::string_view text) { return ParseTimeLimit(text, kStarted, kZone).value(); };

  CHECK(parse("90s") == absl::Seconds(90));
  CHECK(parse("1h30m") == absl::Minutes(90));
  CHECK(parse("12:31") == absl::Minutes(1));
  CHECK(parse("12:30:05") == absl::Seconds(5));
  CHECK(parse("2026-11-23T10:31:00Z") == absl::Minutes(1));
  CHECK(parse("2026-11-23T12:31:00+02:00") == absl::Minutes(1));
  CHECK(parse("2026-11-24 12:30") == absl::Hours(24));
  CHECK(parse("2026-11-23T12:45") == absl::Minutes(15));
}

TEST_CASE("time limit: a time of day that has passed is tomorrow's", "[cli]") {
  CHECK(ParseTimeLimit("12:00", kStarted, kZone).value() == absl::Hours(24) - absl::Minutes(30));
  CHECK(ParseTimeLimit("12:30", kStarted, kZone).value() == absl::Hours(24));
}

TEST_CASE("time limit: what is no time, or has passed, is refused", "[cli]") {
  for (const char* text : {"", "soon", "25:00", "0s", "-5m", "12:3x", "2026-13-01 10:00"}) {
    CAPTURE(text);
    CHECK_THAT(std::string(ParseTimeLimit(text, kStarted, kZone).status().message()), Contains("is no time"));
  }
  CHECK_THAT(std::string(ParseTimeLimit("2026-11-23 12:29", kStarted, kZone).status().message()),
             Contains("has passed"));
}

}  // namespace
}  // namespace lockstep::cli
