// A line of the log as data, and its two forms: a line for people and a JSON object for programs. Every process of a
// job writes these, and the chief keeps its own (docs/formats/log.md).
//
//   12:00:01.123 worker-1 3.7@4402: warn: gradients overflowed
//   {"time":"2026-11-27T12:00:01.123Z","level":"warn","part":"worker","worker":"worker-1","generation":"3.7",
//    "step":4402,"message":"gradients overflowed"}
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_COMMON_LOG_RECORD_H_
#define LOCKSTEP_COMMON_LOG_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep {

enum class LogLevel { debug, info, warn, error };
enum class LogFormat { text, json };

// The name of a level, such as "warn", and its inverse; nullopt for an unknown name.
absl::string_view LogLevelName(LogLevel level);
std::optional<LogLevel> ParseLogLevel(absl::string_view name);

struct LogRecord {
  using Value = std::variant<int64_t, double, std::string>;

  int64_t at_ms = 0;  // since 1970
  LogLevel level = LogLevel::info;
  std::string part;        // of the program: chief, worker, run
  std::string worker;      // the worker that writes it, or that a chief's line is about; "": none
  std::string generation;  // "3.7"; "": none was formed yet
  int64_t step = -1;       // -1: not known
  std::string event;       // the name of a LogEvent, such as "saved"; else ""
  std::string message;
  std::vector<std::pair<std::string, Value>> fields;  // further values for programs; names differ from the above
};

// One line, without its end. A field called `step` replaces the record's step. Unknown members are left out, and bytes
// that are no UTF-8 are replaced.
std::string LogRecordJson(const LogRecord& record);
// Parses such a line; nullopt when it is malformed.
std::optional<LogRecord> ParseLogRecord(absl::string_view json);

// The text form without time and line end. Control characters are escaped, and continuation lines are indented.
std::string LogRecordText(const LogRecord& record, bool colour);
// "2026-11-27T12:00:01.123Z"
std::string LogTimeText(int64_t at_ms);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LOG_RECORD_H_
