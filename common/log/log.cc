#include "common/log/log.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/log/escape.h"
#include "common/log/output.h"
#include "common/sync/mutex.h"
#include "spdlog/details/null_mutex.h"
#include "spdlog/sinks/base_sink.h"
#include "spdlog/spdlog.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kFlushPatience = absl::Seconds(1);
constexpr absl::string_view kNames[] = {"debug", "info", "warn", "error"};
constexpr absl::string_view kColours[] = {"\x1b[2m", "", "\x1b[33m", "\x1b[1;31m"};
constexpr absl::string_view kGood = "\x1b[32m";
constexpr absl::string_view kPlain = "\x1b[0m";

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
    ProcessOutput(fd_).Write(fd_, std::string(line.data(), line.size()), kind_);
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

struct LogState {
  Mutex mutex;
  Channel timed GUARDED_BY(mutex){"%H:%M:%S.%e %v"};
  Channel bare GUARDED_BY(mutex){"%v"};
  LogOptions options GUARDED_BY(mutex);
  bool colour GUARDED_BY(mutex) = StyleOf(STDERR_FILENO).colour;
  absl::Status first_failure GUARDED_BY(mutex);
  int last_line_fd GUARDED_BY(mutex) = -1;
  bool last_line_logged GUARDED_BY(mutex) = true;
};

LogState& State() {
  static LogState* const state = new LogState;  // outlives every thread that still logs at exit
  return *state;
}

std::atomic<int> enabled_level{static_cast<int>(LogLevel::info)};

Json JsonLine(const LogOptions& options, LogLevel level) {
  return {{"time", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E3SZ", absl::Now(), absl::UTCTimeZone())},
          {"level", kNames[static_cast<int>(level)]},
          {"role", options.role}};
}

std::string Dump(const Json& line) { return line.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A line of the log as text, behind its time.
std::string Compose(const LogOptions& options, bool colour, LogLevel level, absl::string_view message) {
  const std::string role = options.role.empty() ? "" : absl::StrCat(options.role, ": ");
  const int index = static_cast<int>(level);
  std::string severity = level == LogLevel::info ? "" : absl::StrCat(kNames[index], ":");
  if (!severity.empty()) {
    severity = colour ? absl::StrCat(kColours[index], severity, kPlain, " ") : absl::StrCat(severity, " ");
  }
  return absl::StrCat(role, severity, EscapeControls(message));
}

// Says what was dropped of `fd`'s lines since the last one, where there is room again.
void NoteDropped(LogState& state, int fd) ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  const DroppedOutput dropped = ProcessOutput(fd).TakeDropped();
  if (dropped.lines + dropped.progress == 0) return;
  const std::string text = absl::StrCat("not written, because nobody read this output: ", dropped.lines,
                                        " lines of the log and ", dropped.progress, " of progress");
  if (state.options.format == LogFormat::text) {
    return state.timed.Write(fd, OutputKind::kLine, Compose(state.options, state.colour, LogLevel::warn, text));
  }
  Json json = JsonLine(state.options, LogLevel::warn);
  json["message"] = text;
  json["dropped_lines"] = dropped.lines;
  json["dropped_progress"] = dropped.progress;
  state.bare.Write(fd, OutputKind::kLine, Dump(json));
}

// A line of the log; `fields` stand behind the message where lines are JSON.
void Put(LogState& state, LogLevel level, absl::string_view message, OutputKind kind, const Json& fields)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mutex) {
  NoteDropped(state, STDERR_FILENO);
  if (state.options.format == LogFormat::text) {
    return state.timed.Write(STDERR_FILENO, kind, Compose(state.options, state.colour, level, message));
  }
  Json json = JsonLine(state.options, level);
  json["message"] = message;
  json.update(fields);
  state.bare.Write(STDERR_FILENO, kind, Dump(json));
}

// True when the supervisor has taken the cause.
bool GiveToSupervisor(int fd, absl::string_view cause) {
  if (fd < 0) return false;
  const ssize_t n = write(fd, cause.data(), cause.size());
  return n == static_cast<ssize_t>(cause.size());
}

}  // namespace

void InitLog(const LogOptions& options) {
  MutexLock lock(&State().mutex);
  State().options = options;
  enabled_level = static_cast<int>(options.level);
}

void SetLogStyle(LogLevel level, LogFormat format) {
  MutexLock lock(&State().mutex);
  State().options.level = level;
  State().options.format = format;
  enabled_level = static_cast<int>(level);
}

LogFormat CurrentLogFormat() {
  MutexLock lock(&State().mutex);
  return State().options.format;
}

void SetLogRole(absl::string_view role) {
  MutexLock lock(&State().mutex);
  State().options.role = std::string(role);
}

bool LogEnabled(LogLevel level) { return static_cast<int>(level) >= enabled_level; }

void LogLine(LogLevel level, absl::string_view message) {
  MutexLock lock(&State().mutex);
  Put(State(), level, message, OutputKind::kLine, Json::object());
}

void LogEventLine(const LogEvent& event) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  const OutputKind kind = event.regular ? OutputKind::kProgress : OutputKind::kLine;
  NoteDropped(state, STDOUT_FILENO);
  if (state.options.format == LogFormat::text) {
    std::string text = EscapeControls(event.text);
    if (event.good && StyleOf(STDOUT_FILENO).colour) {
      text.insert(std::min(text.find('\n'), text.size()), std::string(kPlain));
      text.insert(0, std::string(kGood));
    }
    return state.bare.Write(STDOUT_FILENO, kind, text);
  }
  Json json = JsonLine(state.options, LogLevel::info);
  json["event"] = event.name;
  for (const auto& [name, value] : event.fields) {
    std::visit([&json, &name = name](const auto& alternative) { json[name] = alternative; }, value);
  }
  json["message"] = event.text;
  state.bare.Write(STDOUT_FILENO, kind, Dump(json));
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
    const std::string text = absl::StrCat("exit ", exit_code, ": ", shown.message());
    // Else the supervisor says it, behind its own lines.
    if (!given || state.last_line_logged) {
      Put(state, LogLevel::error, text, OutputKind::kLast, {{"exit_code", exit_code}});
    }
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

void FlushLog() {
  ProcessOutput(STDOUT_FILENO).Flush(kFlushPatience);
  ProcessOutput(STDERR_FILENO).Flush(kFlushPatience);
}

}  // namespace lockstep
