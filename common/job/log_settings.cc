#include "common/job/log_settings.h"

#include <optional>

#include "common/log/log.h"

namespace lockstep {
namespace {

std::optional<LogLevel> LevelOf(job::Log::Level level) {
  switch (level) {
    case job::Log::LEVEL_DEBUG:
      return LogLevel::debug;
    case job::Log::LEVEL_INFO:
      return LogLevel::info;
    case job::Log::LEVEL_WARN:
      return LogLevel::warn;
    case job::Log::LEVEL_ERROR:
      return LogLevel::error;
    default:
      return std::nullopt;
  }
}

std::optional<LogFormat> FormatOf(job::Log::Format format) {
  switch (format) {
    case job::Log::FORMAT_JSON:
      return LogFormat::json;
    case job::Log::FORMAT_TEXT:
      return LogFormat::text;
    default:
      return std::nullopt;
  }
}

}  // namespace

void ApplyLogSettings(const JobSpec& spec) {
  const job::Log& log = spec.observe().log();
  SetLogStyle(LevelOf(log.level()), FormatOf(log.format()));
}

}  // namespace lockstep
