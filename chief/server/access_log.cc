#include "chief/server/access_log.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

void LogAccess(absl::string_view line) {
  LogEventLine({.name = "access", .text = absl::StrCat("access: ", line), .fields = {}});
}

}  // namespace

void AccessLog::Refused(absl::string_view peer, absl::string_view why) {
  MutexLock lock(&mutex_);
  for (const std::string& line : refusals_.Add(SteadyNow(), peer, why)) LogAccess(line);
}

void AccessLog::Did(absl::string_view caller, absl::string_view what) { LogAccess(absl::StrCat(caller, ": ", what)); }

uint64_t AccessLog::refused() const {
  MutexLock lock(&mutex_);
  return refusals_.total();
}

}  // namespace lockstep::chief
