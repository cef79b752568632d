#include "common/log/log.h"

#include <atomic>
#include <memory>
#include <utility>

#include "common/sync/mutex.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace lockstep {
namespace {

struct LogState {
  Mutex mutex;
  LogOptions options GUARDED_BY(mutex);
  std::shared_ptr<spdlog::logger> logger GUARDED_BY(mutex);
  absl::Status first_failure GUARDED_BY(mutex);
};

LogState& State() {
  static LogState* const state = new LogState;  // outlives every thread that still logs at exit
  return *state;
}

std::atomic<int> enabled_level{static_cast<int>(LogLevel::info)};

spdlog::level::level_enum ToSpdlog(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warn:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

std::string EscapeJson(absl::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      static constexpr char kHex[] = "0123456789abcdef";
      out += "\\u00";
      out += kHex[(c >> 4) & 15];
      out += kHex[c & 15];
    } else {
      out += c;
    }
  }
  return out;
}

std::shared_ptr<spdlog::logger> MakeLogger(const LogOptions& options) {
  auto logger = std::make_shared<spdlog::logger>("lockstep", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  logger->set_level(spdlog::level::debug);
  logger->flush_on(spdlog::level::debug);
  const bool json = options.format == LogFormat::json;
  logger->set_pattern(json ? "%v" : "%H:%M:%S.%e %v");
  return logger;
}

std::string Compose(const LogOptions& options, LogLevel level, absl::string_view message) {
  static constexpr absl::string_view kNames[] = {"debug", "info", "warn", "error"};
  const absl::string_view name = kNames[static_cast<int>(level)];
  if (options.format == LogFormat::json) {
    return absl::StrCat("{\"level\":\"", name, "\",\"role\":\"", EscapeJson(options.role), "\",\"message\":\"",
                        EscapeJson(message), "\"}");
  }
  const std::string role = options.role.empty() ? "" : absl::StrCat(options.role, ": ");
  const std::string severity = level == LogLevel::info ? "" : absl::StrCat(name, ": ");
  return absl::StrCat(role, severity, message);
}

}  // namespace

void InitLog(const LogOptions& options) {
  MutexLock lock(&State().mutex);
  State().options = options;
  State().logger = MakeLogger(options);
  enabled_level = static_cast<int>(options.level);
}

void SetLogStyle(LogLevel level, LogFormat format) {
  MutexLock lock(&State().mutex);
  State().options.level = level;
  State().options.format = format;
  State().logger = MakeLogger(State().options);
  enabled_level = static_cast<int>(level);
}

void SetLogRole(absl::string_view role) {
  MutexLock lock(&State().mutex);
  State().options.role = std::string(role);
}

bool LogEnabled(LogLevel level) { return static_cast<int>(level) >= enabled_level; }

void LogLine(LogLevel level, absl::string_view message) {
  LogState& state = State();
  MutexLock lock(&state.mutex);
  if (!state.logger) state.logger = MakeLogger(state.options);
  state.logger->log(ToSpdlog(level), "{}", Compose(state.options, level, message));
}

void ReportFailure(const absl::Status& status) {
  if (status.ok()) return;
  bool is_first = false;
  {
    MutexLock lock(&State().mutex);
    is_first = State().first_failure.ok();
    if (is_first) State().first_failure = status;
  }
  LogLine(LogLevel::error, absl::StrCat(is_first ? "" : "(consequence) ", status.message()));
}

absl::Status FirstFailure() {
  MutexLock lock(&State().mutex);
  return State().first_failure;
}

void WriteLastLine(const absl::Status& cause, int exit_code) {
  const absl::Status first = FirstFailure();
  const absl::Status& shown = first.ok() ? cause : first;
  LogLine(LogLevel::error, absl::StrCat("exit ", exit_code, ": ", shown.message()));
  FlushLog();
}

void FlushLog() {
  MutexLock lock(&State().mutex);
  if (State().logger) State().logger->flush();
}

}  // namespace lockstep
