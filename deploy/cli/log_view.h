// What `lockstep logs` shows of the lines that chiefs kept, and how.
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
  std::string worker;  // lines about this one alone: they have its name, or mention it; "": all
  int64_t since_ms = std::numeric_limits<int64_t>::min();
};

bool IsWanted(const LogFilter& filter, const LogRecord& record);

// A line without its end, with date and time of `zone`: "2026-11-27 12:00:01.123 chief 3.7@4402: warn: …". What one
// hopes for (the job is done) is green, where there are colours.
std::string LogViewLine(const LogRecord& record, bool colour, const absl::TimeZone& zone);

// True for the last word of a program: it says with which code it ended.
bool IsLastWord(const LogRecord& record);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_LOG_VIEW_H_
