// What a process says, a line at a time, and how it says that it failed: the first cause stands on the last line, and
// what followed from it is labelled so. No caller waits for who reads it (common/log/output.h).
//
//   InitLog({.role = "worker-1"});
//   LS_LOG(info, "synced ", position, " in ", duration);
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LOG_LOG_H_
#define LOCKSTEP_COMMON_LOG_LOG_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {

enum class LogLevel { debug, info, warn, error };
enum class LogFormat { text, json };

struct LogOptions {
  std::string role;  // "chief", "worker-1": stands before every line
  LogLevel level = LogLevel::info;
  LogFormat format = LogFormat::text;
};

// Sets up the log of this process, to its standard error. May be called again; without a call, lines go out as text
// at level info without a role.
void InitLog(const LogOptions& options);

// Changes what is written and how, but not the role: for a program that learns it from its job.
void SetLogStyle(LogLevel level, LogFormat format);
LogFormat CurrentLogFormat();

// Changes the prefix, for example once a worker has learnt its name.
void SetLogRole(absl::string_view role);

// True when lines of `level` are written.
bool LogEnabled(LogLevel level);

// Writes one line. As text, control characters are shown as escapes and further lines are set in.
void LogLine(LogLevel level, absl::string_view message);

// A line about the course of the job, for people and for programs.
struct LogEvent {
  using Value = std::variant<int64_t, double, std::string>;

  std::string name;                                   // "progress", "saved"
  std::string text;                                   // what people read
  std::vector<std::pair<std::string, Value>> fields;  // what programs read
  bool regular = false;                               // one of many alike: the first to be dropped
  bool good = false;                                  // what one hopes for: its first line is green
};

// Writes `event` to the standard output: its text, or in the format json an object with its name and fields.
void LogEventLine(const LogEvent& event);

// Keeps `status` as the first cause of this process's end, unless there is one already; a later one is logged as its
// consequence. Ignores OK.
void ReportFailure(const absl::Status& status);

// The first cause reported; OK when there is none.
absl::Status FirstFailure();

// The last words of a failing process: the first cause with exit code `exit_code` on one line, after everything else
// was flushed. Where a supervisor said so (HandOverLastLine), it gets the cause to say last.
void WriteLastLine(const absl::Status& cause, int exit_code);

// From now on WriteLastLine writes the bare cause to `fd`, a pipe to the supervisor. `also_logged`: and to the log.
// What is no pipe is ignored: the descriptor may serve another purpose by then.
void HandOverLastLine(int fd, bool also_logged);

// Writes out what is buffered; gives up on an output that takes nothing.
void FlushLog();

}  // namespace lockstep

// The arguments are those of absl::StrCat and are evaluated only when the level is on.
#define LS_LOG(severity, ...)                                                           \
  do {                                                                                  \
    if (::lockstep::LogEnabled(::lockstep::LogLevel::severity))                         \
      ::lockstep::LogLine(::lockstep::LogLevel::severity, ::absl::StrCat(__VA_ARGS__)); \
  } while (false)

#endif  // LOCKSTEP_COMMON_LOG_LOG_H_
