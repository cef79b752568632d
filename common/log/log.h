// What a process says, a line at a time, and how it says that it failed: the first cause stands on the last line, and
// what followed from it is labelled so. No caller waits for who reads it (common/log/output.h).
//
// Lines are text or JSON (common/log/record.h), as the job says; until it is read, and where it says nothing, as the
// variables LOCKSTEP_LOG_FORMAT (text, json) and LOCKSTEP_LOG_LEVEL (debug, info, warn, error) say.
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

// What the variables say; nothing where one is not set. InvalidArgument names the variable and what it may be.
// `format` and `level` are their values; nullptr: not set.
struct LogStyle {
  std::optional<LogLevel> level;
  std::optional<LogFormat> format;
};
absl::StatusOr<LogStyle> ParseLogVariables(const char* format, const char* level);
absl::StatusOr<LogStyle> LogStyleOfEnvironment();

struct LogOptions {
  std::string part;                 // of the program: "chief", "worker", "run"
  std::string worker;               // its name, of a worker that knows it
  std::optional<LogLevel> level;    // this and the next: where nothing is said, as the variables say
  std::optional<LogFormat> format;  // else info and text
};

// Sets up the log of this process, to its standard error. May be called again; without a call, lines go out without a
// part.
void InitLog(const LogOptions& options);

// Changes what is written and how: for a program that learns it from its job. Where nothing is said the variables hold.
void SetLogStyle(std::optional<LogLevel> level, std::optional<LogFormat> format);
LogFormat CurrentLogFormat();

// A worker has learnt its name.
void SetLogWorker(absl::string_view worker);

// Where the job stands, as this process knows it; every line says so from now on. Term 0: it is in no generation.
void SetLogPosition(uint64_t term, uint64_t counter, uint64_t step);

// From now on `tap` gets every line of level info and above, and each event that is not regular, whatever of them is
// written; nullptr: no more. It is called under the log's lock: it must not block, nor log.
void SetLogTap(std::function<void(const LogRecord&)> tap);

// True when lines of `level` are written, or taken by the tap.
bool LogEnabled(LogLevel level);

// Writes one line. As text, control characters are shown as escapes and further lines are set in.
void LogLine(LogLevel level, absl::string_view message);
// The same of a chief about one worker.
void LogLineAbout(LogLevel level, absl::string_view worker, absl::string_view message);

// A line about the course of the job, for people and for programs.
struct LogEvent {
  using Value = LogRecord::Value;

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

// Children start with the style of this process: sets the variables.
void ExportLogStyle();
// The same as the beginning of a command line, by env, for a process on another machine; nothing where lines are text.
std::vector<std::string> LogStyleWords();

// From now on, while lines are JSON, what others write to this process's outputs becomes objects as well
// (common/log/foreign_output.h). REQUIRES: this process executes no other program in its own place afterwards.
void WrapForeignOutput();

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
