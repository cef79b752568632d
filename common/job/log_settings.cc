#include "common/job/log_settings.h"

#include "common/log/log.h"

namespace lockstep {
namespace {

LogLevel LevelOf(job::Log::Level level) {
  switch (level) {
    case job::Log::LEVEL_DEBUG:
      return LogLevel::debug;
    case job::Log::LEVEL_WARN:
      return LogLevel::warn;
    case job::Log::LEVEL_ERROR:
      return LogLevel::error;
    default:
      return LogLevel::info;
  }
}

}  // namespace

void ApplyLogSettings(const JobSpec& spec) {
  const job::Log& log = spec.observe().log();
  SetLogStyle(LevelOf(log.level()), log.format() == job::Log::FORMAT_JSON ? LogFormat::json : LogFormat::text);
}

}  // namespace lockstep
