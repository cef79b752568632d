#include "deploy/cli/time_limit.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/units.h"

namespace lockstep::cli {
namespace {

// The next time of day of this kind.
bool ReadTimeOfDay(absl::string_view text, absl::Time now, absl::TimeZone zone, absl::Time& found) {
  const absl::CivilDay today = absl::ToCivilDay(now, zone);
  for (const char* format : {"%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"}) {
    for (const absl::CivilDay day : {today, today + 1}) {
      const std::string date = absl::FormatCivilTime(day);
      if (absl::ParseTime(format, absl::StrCat(date, " ", text), zone, &found, nullptr) && found > now) return true;
    }
  }
  return false;
}

}  // namespace

absl::StatusOr<absl::Duration> ParseTimeLimit(absl::string_view text, absl::Time now, absl::TimeZone zone) {
  if (const auto span = job::ParseTime(text); span.ok() && *span > absl::ZeroDuration()) return *span;
  absl::Time found;
  if (ReadTimeOfDay(text, now, zone, found)) return found - now;
  for (const char* format :
       {absl::RFC3339_full, "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M"}) {
    if (!absl::ParseTime(format, text, zone, &found, nullptr)) continue;
    if (found > now) return found - now;
    return absl::InvalidArgumentError(
        absl::StrCat("'", text, "' has passed; it is ", absl::FormatTime("%Y-%m-%d %H:%M:%S %Ez", now, zone)));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", text,
                   "' is no time: give a span such as 90s or 10m, a time of day such as 18:30, or a date "
                   "with a time such as 2026-11-23T18:30:00Z"));
}

}  // namespace lockstep::cli
