#include "common/log/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/log/escape.h"
#include "common/log/foreign_output.h"
#include "common/log/output.h"
#include "common/sync/mutex.h"
#include "spdlog/details/null_mutex.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace lockstep {
namespace {

constexpr absl::Duration kFlushPatience = absl::Seconds(1);
constexpr absl::string_view kGood = "\x1b[32m";
constexpr absl::string_view kPlain = "\x1b[0m";
constexpr char kFormatVariable[] = "LOCKSTEP_LOG_FORMAT";
constexpr char kLevelVariable[] = "LOCKSTEP_LOG_LEVEL";

// Hands lines to the queue of an output of this process, which writes them. Owned by a Channel.
class QueueSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  // Where the next lines go.
  void Aim(int fd, OutputKind kind) {
    fd_ = fd;
    kind_ = kind;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    ProcessOutput(fd_).Write(OwnOutput(fd_), std::string(line.data(), line.size()), kind_);
  }
  void flush_() override {}  // FlushLog waits for the queues

  int fd_ = STDERR_FILENO;
  OutputKind kind_ = OutputKind::kLine;
};

// A logger whose lines have one pattern. Thread-compatible.
class Channel {
 public:
  explicit Channel(const char* pattern) : sink_(std::make_shared<QueueSink>()), logger_("lockstep", sink_) {
    logger_.set_pattern(pattern);
  }
  void Write(int fd, OutputKind kind, absl::string_view line) {
    sink_->Aim(fd, kind);
    logger_.log(spdlog::level::info, spdlog::string_view_t(line.data(), line.size()));
  }

 private:
  const std::shared_ptr<QueueSink> sink_;
  spdlog::logger logger_;
};

// What holds where nothing else is said. A variable that cannot be read says nothing here: main refuses it.
LogStyle StyleOfVariables() { return LogStyleOfEnvironment().value_or(LogStyle()); }

struct Position {
  std::string generation;
  int64_t step = -1;
};

struct LogState {
  Mutex mutex;
  Channel timed GUARDED_BY(mutex){"%H:%M:%S.%e %v"};
  Channel bare GUARDED_BY(mutex){"%v"};
  std::string part GUARDED_BY(mutex);
  std::string worker GUARDED_BY(mutex);
  LogLevel level GUARDED_BY(mutex) = StyleOfVariables().level.value_or(LogLevel::info);
  LogFormat format GUARDED_BY(mutex) = StyleOfVariables().format.value_or(LogFormat::text);
  Position position GUARDED_BY(mutex);
  std::function<void(const LogRecord&)> tap GUARDED_BY(mutex);
  bool colour GUARDED_BY(mutex) = StyleOf(STDERR_FILENO).colour;
  absl::Status first_failure GUARDED_BY(mutex);
  int last_line_fd GUARDED_BY(mutex) = -1;
  bool last_line_logged GUARDED_BY(mutex) = true;
  bool wraps_foreign GUARDED_BY(mutex) = false;
};

LogState& State() {
  static LogState* const state = new LogState;  // outlives every thread that still logs at exit
  return *state;
}

std::atomic<int> enabled_level{static_cast<int>(StyleOfVariables().level.value_or(LogLevel::info))};

void TakeForeign(absl::string_view line);

void SetStyle(LogState& state, std::optional<LogLevel> level, std::optional<LogFormat> format)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const LogStyle variables = StyleOfVariables();
  state.level = level.value_or(variables.level.value_or(LogLevel::info));
  state.format = format.value_or(variables.format.value_or(LogFormat::text));
  const LogLevel taken = state.tap == nullptr ? state.level : std::min(state.level, LogLevel::info);
  enabled_level = static_cast<int>(taken);
  if (!state.wraps_foreign || state.format != LogFormat::json) return;
  ProcessOutput(STDERR_FILENO);  // it looks where the outputs lead
  CaptureForeignOutput(TakeForeign, [] { return ProcessOutput(STDERR_FILENO).IsIdle(); });
}

// A line of this moment.
LogRecord RecordOf(const LogState& state, LogLevel level, absl::string_view message)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  LogRecord record;
  record.at_ms = absl::ToUnixMillis(absl::Now());
  record.level = level;
  record.part = state.part.empty() && state.format == LogFormat::json ? "lockstep" : state.part;
  record.worker = state.worker;
  record.generation = state.position.generation;
  record.step = state.position.step;
  record.message = std::string(message);
  return record;
}

void Tap(LogState& state, const LogRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (state.tap != nullptr && record.level >= LogLevel::info) state.tap(record);
}

void Write(LogState& state, int fd, OutputKind kind, const LogRecord& record)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (state.format == LogFormat::text) {
    state.timed.Write(fd, kind, LogRecordText(record, state.colour));
  } else {
    state.bare.Write(fd, kind, LogRecordJson(record));
  }
}

// Says what was dropped of `fd`'s lines since the last one, where there is room again.
void NoteDropped(LogState& state, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const DroppedOutput dropped = ProcessOutput(fd).TakeDropped();
  if (dropped.lines + dropped.progress == 0) return;
  LogRecord record = RecordOf(state, LogLevel::warn,
                              absl::StrCat("not written, because nobody read this output: ", dropped.lines,
                                           " lines of the log and ", dropped.progress, " of progress"));
  record.fields = {{"dropped_lines", dropped.lines}, {"dropped_progress", dropped.progress}};
  Write(state, fd, OutputKind::kLine, record);
}

// A line of the log.
void Put(LogState& state, const LogRecord& record, OutputKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  if (record.level < state.level) return;
  NoteDropped(state, STDERR_FILENO);
  Write(state, STDERR_FILENO, kind, record);
}

// A line that another wrote to this process's outputs.
void TakeForeign(absl::string_view line) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  // Of a process whose lines are objects.
  if (ParseLogRecord(line).has_value()) {
    return state.bare.Write(STDERR_FILENO, OutputKind::kLine, line);
  }
  const LogRecord record = RecordOf(state, LogLevel::warn, line);
  Tap(state, record);
  Put(state, record, OutputKind::kLine);
}

// True when the supervisor has taken the cause.
bool GiveToSupervisor(int fd, absl::string_view cause) {
  if (fd < 0) return false;
  const ssize_t n = write(fd, cause.data(), cause.size());
  return n == static_cast<ssize_t>(cause.size());
}

}  // namespace

absl::StatusOr<LogStyle> ParseLogVariables(const char* format, const char* level) {
  LogStyle style;
  const absl::string_view wanted = format == nullptr ? "" : format;
  if (wanted == "json") style.format = LogFormat::json;
  if (wanted == "text") style.format = LogFormat::text;
  if (!wanted.empty() && !style.format.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the variable ", kFormatVariable, " is '", wanted, "'; it may be text or json"));
  }
  if (level == nullptr || *level == '\0') return style;
  style.level = ParseLogLevel(level);
  if (style.level.has_value()) return style;
  return absl::InvalidArgumentError(
      absl::StrCat("the variable ", kLevelVariable, " is '", level, "'; it may be debug, info, warn or error"));
}

absl::StatusOr<LogStyle> LogStyleOfEnvironment() {
  return ParseLogVariables(std::getenv(kFormatVariable), std::getenv(kLevelVariable));
}

void InitLog(const LogOptions& options) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  state.part = options.part;
  state.worker = options.worker;
  state.position = {};
  SetStyle(state, options.level, options.format);
}

void SetLogStyle(std::optional<LogLevel> level, std::optional<LogFormat> format) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  SetStyle(state, level, format);
}

LogFormat CurrentLogFormat() {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  return state.format;
}

void SetLogWorker(absl::string_view worker) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  state.worker = std::string(worker);
}

void SetLogPosition(uint64_t term, uint64_t counter, uint64_t step) {
  LogState& state = State();
  std::string generation = term == 0 ? "" : absl::StrCat(term, ".", counter);
  MutexLock lock(&state.mutex);
  state.position = {std::move(generation), static_cast<int64_t>(step)};
}

void SetLogTap(std::function<void(const LogRecord&)> tap) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  state.tap = std::move(tap);
  SetStyle(state, state.level, state.format);
}

bool LogEnabled(LogLevel level) { return static_cast<int>(level) >= enabled_level; }

void LogLine(LogLevel level, absl::string_view message) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  const LogRecord record = RecordOf(state, level, message);
  Tap(state, record);
  Put(state, record, OutputKind::kLine);
}

void LogLineAbout(LogLevel level, absl::string_view worker, absl::string_view message) {
  if (!LogEnabled(level)) return;
  LogState& state = State();
  MutexLock lock(&state.mutex);
  LogRecord record = RecordOf(state, level, message);
  record.worker = std::string(worker);
  Tap(state, record);
  Put(state, record, OutputKind::kLine);
}

void LogEventLine(const LogEvent& event) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  const OutputKind kind = event.regular ? OutputKind::kProgress : OutputKind::kLine;
  LogRecord record = RecordOf(state, LogLevel::info, event.text);
  record.event = event.name;
  record.fields = event.fields;
  if (!event.regular) Tap(state, record);
  NoteDropped(state, STDOUT_FILENO);
  if (state.format == LogFormat::json) return Write(state, STDOUT_FILENO, kind, record);
  std::string text = EscapeControls(event.text);
  if (event.good && StyleOf(STDOUT_FILENO).colour) {
    text.insert(std::min(text.find('\n'), text.size()), std::string(kPlain));
    text.insert(0, std::string(kGood));
  }
  state.bare.Write(STDOUT_FILENO, kind, text);
}

void ReportFailure(const absl::Status& status) {
  if (status.ok()) return;
  {
    MutexLock lock(&State().mutex);
    if (State().first_failure.ok()) {
      State().first_failure = status;  // said once, on the last line
      return;
    }
  }
  LogLine(LogLevel::error, absl::StrCat("(consequence) ", status.message()));
}

absl::Status FirstFailure() {
  MutexLock lock(&State().mutex);
  return State().first_failure;
}

void WriteLastLine(const absl::Status& cause, int exit_code) {
  FlushLog();
  LogState& state = State();
  {
    MutexLock lock(&state.mutex);
    const absl::Status& shown = state.first_failure.ok() ? cause : state.first_failure;
    const bool given = GiveToSupervisor(state.last_line_fd, shown.message());
    LogRecord record = RecordOf(state, LogLevel::error, absl::StrCat("exit ", exit_code, ": ", shown.message()));
    record.fields = {{"exit_code", int64_t{exit_code}}};
    Tap(state, record);
    // Else the supervisor says it, behind its own lines.
    if (!given || state.last_line_logged) Put(state, record, OutputKind::kLast);
  }
  FlushLog();
}

void HandOverLastLine(int fd, bool also_logged) {
  struct stat what = {};
  const bool is_pipe = fd >= 0 && fstat(fd, &what) == 0 && S_ISFIFO(what.st_mode);
  MutexLock lock(&State().mutex);
  State().last_line_fd = is_pipe ? fd : -1;
  State().last_line_logged = also_logged;
}

void ExportLogStyle() {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  setenv(kFormatVariable, state.format == LogFormat::json ? "json" : "text", /*overwrite=*/1);
  setenv(kLevelVariable, std::string(LogLevelName(state.level)).c_str(), /*overwrite=*/1);
}

std::vector<std::string> LogStyleWords() {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  if (state.format == LogFormat::text) return {};
  return {"env", absl::StrCat(kFormatVariable, "=json"), absl::StrCat(kLevelVariable, "=", LogLevelName(state.level))};
}

void WrapForeignOutput() {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  state.wraps_foreign = true;
  SetStyle(state, state.level, state.format);
}

void FlushLog() {
  DrainForeignOutput(kFlushPatience);
  ProcessOutput(STDOUT_FILENO).Flush(kFlushPatience);
  ProcessOutput(STDERR_FILENO).Flush(kFlushPatience);
}

}  // namespace lockstep
