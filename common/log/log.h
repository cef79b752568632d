// The log of a process, and its report of failure: the last line states the first cause, and later failures are
// labelled as its consequences. Logging never waits for a reader of the output (common/log/output.h).
//
// Lines are text or JSON (common/log/record.h). The job sets format and level; before it is read, and where it sets
// none, the environment variables LOCKSTEP_LOG_FORMAT (text, json) and LOCKSTEP_LOG_LEVEL (debug, info, warn, error)
// do.
//
//   InitLog({.part = "worker", .worker = "worker-1"});
//   LS_LOG(info, "synced ", position, " in ", duration);
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_LOG_LOG_H_
#define LOCKSTEP_COMMON_LOG_LOG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/log/record.h"

namespace lockstep {

// The settings of these variables; nullopt for one that is not set. InvalidArgument names the variable and its allowed
// values. `format` and `level` are the variables' values; nullptr: not set.
struct LogStyle {
  std::optional<LogLevel> level;
  std::optional<LogFormat> format;
};
absl::StatusOr<LogStyle> ParseLogVariables(const char* format, const char* level);
absl::StatusOr<LogStyle> LogStyleOfEnvironment();

struct LogOptions {
  std::string part;                 // of the program: "chief", "worker", "run"
  std::string worker;               // the name of a worker that knows it
  std::optional<LogLevel> level;    // nullopt: LOCKSTEP_LOG_LEVEL, else info
  std::optional<LogFormat> format;  // nullopt: LOCKSTEP_LOG_FORMAT, else text
};

// Sets up the log of this process, which goes to standard error. May be called again; without a call, lines have no
// part.
void InitLog(const LogOptions& options);

// Changes level and format, for a program that learns them from its job. nullopt leaves the choice to the variables.
void SetLogStyle(std::optional<LogLevel> level, std::optional<LogFormat> format);
LogFormat CurrentLogFormat();

// Sets the name of a worker that has learnt it.
void SetLogWorker(absl::string_view worker);

// Sets generation and step, which every later line carries. Term 0: no generation.
void SetLogPosition(uint64_t term, uint64_t counter, uint64_t step);

// Makes `tap` receive every line of level info and above, and each event that is not regular, whether or not they are
// written; nullptr removes the tap. It is called under the log's lock: it must neither block nor log.
void SetLogTap(std::function<void(const LogRecord&)> tap);

// True when lines of `level` are written or given to the tap.
bool LogEnabled(LogLevel level);

// Writes one line. In text format, control characters are escaped and continuation lines are indented.
void LogLine(LogLevel level, absl::string_view message);
// The same for a chief's line about one worker.
void LogLineAbout(LogLevel level, absl::string_view worker, absl::string_view message);

// A line about the course of the job, for people and for programs.
struct LogEvent {
  using Value = LogRecord::Value;

  std::string name;                                   // "progress", "saved"
  std::string text;                                   // for people
  std::vector<std::pair<std::string, Value>> fields;  // for programs
  bool regular = false;                               // one of many alike: dropped first when output lags
  bool good = false;                                  // good news: its first line is green
};

// Writes `event` to the standard output: its text, or in the format json an object with its name and fields.
void LogEventLine(const LogEvent& event);

// Records `status` as the first cause of this process's failure, unless there is one already; a later failure is logged
// as its consequence. Ignores OK.
void ReportFailure(const absl::Status& status);

// The first cause reported; OK when there is none.
absl::Status FirstFailure();

// Writes the last line of a failing process, the first cause with `exit_code`, after it flushed everything else. After
// HandOverLastLine the supervisor gets the cause instead, and prints it as its own last line.
void WriteLastLine(const absl::Status& cause, int exit_code);

// Makes WriteLastLine write the bare cause to `fd`, a pipe to the supervisor, and with `also_logged` to the log too.
// Ignored when `fd` is no pipe: the descriptor may serve another purpose by then.
void HandOverLastLine(int fd, bool also_logged);

// Sets the variables so that child processes start with the log style of this process.
void ExportLogStyle();
// The same as the first words of a command line (`env ...`) for a process on another machine; empty when lines are
// text.
std::vector<std::string> LogStyleWords();

// While lines are JSON, wraps what other code writes to this process's outputs in objects as well
// (common/log/foreign_output.h). REQUIRES: this process executes no other program in its own place afterwards.
void WrapForeignOutput();

// Writes out what is buffered; gives up on an output that accepts nothing.
void FlushLog();

}  // namespace lockstep

// Takes arguments of absl::StrCat, which are evaluated only when the level is enabled.
#define LS_LOG(severity, ...)                                                           \
  do {                                                                                  \
    if (::lockstep::LogEnabled(::lockstep::LogLevel::severity))                         \
      ::lockstep::LogLine(::lockstep::LogLevel::severity, ::absl::StrCat(__VA_ARGS__)); \
  } while (false)

#endif  // LOCKSTEP_COMMON_LOG_LOG_H_
