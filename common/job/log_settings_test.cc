#include "common/job/log_settings.h"

#include <catch2/catch.hpp>

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

}  // namespace
}  // namespace lockstep
