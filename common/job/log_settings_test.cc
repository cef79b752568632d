#include "common/job/log_settings.h"

#include <catch2/catch.hpp>
#include <cstdlib>

#include "common/log/log.h"

namespace lockstep {
namespace {

JobSpec With(job::Log::Level level) {
  JobSpec spec;
  spec.mutable_observe()->mutable_log()->set_level(level);
  return spec;
}

TEST_CASE("log settings: the job says what is written", "[job]") {
  ApplyLogSettings(With(job::Log::LEVEL_ERROR));
  CHECK(LogEnabled(LogLevel::error));
  CHECK_FALSE(LogEnabled(LogLevel::warn));
  ApplyLogSettings(With(job::Log::LEVEL_DEBUG));
  CHECK(LogEnabled(LogLevel::debug));
  ApplyLogSettings(With(job::Log::LEVEL_INFO));
  CHECK(LogEnabled(LogLevel::info));
  CHECK_FALSE(LogEnabled(LogLevel::debug));
}

TEST_CASE("log settings: where the job says nothing, the variables do", "[job]") {
  setenv("LOCKSTEP_LOG_FORMAT", "json", 1);
  setenv("LOCKSTEP_LOG_LEVEL", "warn", 1);
  JobSpec spec;
  spec.mutable_observe()->mutable_log()->set_format(job::Log::FORMAT_AUTO);
  ApplyLogSettings(spec);
  CHECK(CurrentLogFormat() == LogFormat::json);
  CHECK_FALSE(LogEnabled(LogLevel::info));

  spec.mutable_observe()->mutable_log()->set_format(job::Log::FORMAT_TEXT);
  spec.mutable_observe()->mutable_log()->set_level(job::Log::LEVEL_DEBUG);
  ApplyLogSettings(spec);
  CHECK(CurrentLogFormat() == LogFormat::text);
  CHECK(LogEnabled(LogLevel::debug));

  unsetenv("LOCKSTEP_LOG_FORMAT");
  unsetenv("LOCKSTEP_LOG_LEVEL");
  ApplyLogSettings(JobSpec());
  CHECK(CurrentLogFormat() == LogFormat::text);
  CHECK_FALSE(LogEnabled(LogLevel::debug));
}

}  // namespace
}  // namespace lockstep
