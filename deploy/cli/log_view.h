// Selects and formats the lines of chiefs' logs for `lockstep logs`.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_LOG_VIEW_H_
#define LOCKSTEP_DEPLOY_CLI_LOG_VIEW_H_

#include <cstdint>
#include <limits>
#include <string>

#include "absl/time/time.h"
#include "common/log/record.h"

namespace lockstep::cli {

struct LogFilter {
  LogLevel level = LogLevel::info;
  std::string worker;  // only lines that have or mention this name; "": all
  int64_t since_ms = std::numeric_limits<int64_t>::min();
};

bool IsWanted(const LogFilter& filter, const LogRecord& record);

// A line without its newline, with date and time in `zone`: "2026-11-27 12:00:01.123 chief 3.7@4402: warn: …". With
// `colour`, good news (the job is done) is green.
std::string LogViewLine(const LogRecord& record, bool colour, const absl::TimeZone& zone);

// Whether the line is the last one of a process, which states its exit code.
bool IsLastWord(const LogRecord& record);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOG_VIEW_H_
