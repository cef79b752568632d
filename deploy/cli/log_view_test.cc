#include "deploy/cli/log_view.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::cli {
namespace {

LogRecord Record(const std::string& message) {
  LogRecord record;
  record.at_ms = 1795780801123;
  record.part = "chief";
  record.generation = "3.7";
  record.step = 4402;
  record.message = message;
  return record;
}

TEST_CASE("logs: lines are chosen by level, age and the worker that they are about", "[cli]") {
  LogRecord record = Record("worker-1: lost");
  CHECK(IsWanted({}, record));
  CHECK_FALSE(IsWanted({.level = LogLevel::warn}, record));
  record.level = LogLevel::error;
  CHECK(IsWanted({.level = LogLevel::warn}, record));
  CHECK(IsWanted({.since_ms = record.at_ms}, record));
  CHECK_FALSE(IsWanted({.since_ms = record.at_ms + 1}, record));

  const LogFilter one = {.worker = "worker-1"};
  for (const char* about :
       {"worker-1: lost", "generation 3.8: worker-2, worker-1", "it waits for worker-1.", "worker-11 and worker-1"}) {
    CAPTURE(about);
    CHECK(IsWanted(one, Record(about)));
  }
  for (const char* not_about : {"worker-11: lost", "my-worker-1 left", "worker-1.example is a host", "nobody", ""}) {
    CAPTURE(not_about);
    CHECK_FALSE(IsWanted(one, Record(not_about)));
  }
  record = Record("it left");
  record.worker = "worker-1";
  CHECK(IsWanted(one, record));
}

TEST_CASE("logs: a line has date, time, speaker, where the job stood, level and text", "[cli]") {
  LogRecord record = Record("a\x1b[2J\nb");
  record.level = LogLevel::warn;
  CHECK(LogViewLine(record, false, absl::UTCTimeZone()) ==
        "2026-11-27 12:00:01.123 chief 3.7@4402: warn: a\\x1b[2J\n    b");
  CHECK(LogViewLine(record, true, absl::UTCTimeZone()) ==
        "\x1b[2m2026-11-27 12:00:01.123\x1b[0m chief 3.7@4402: \x1b[33mwarn:\x1b[0m a\\x1b[2J\n    b");
  record = Record("done at step 9\nload it");
  record.event = "done";
  CHECK(LogViewLine(record, true, absl::UTCTimeZone()) ==
        "\x1b[2m2026-11-27 12:00:01.123\x1b[0m \x1b[32mchief 3.7@4402: done at step 9\x1b[0m\n    load it");
}

TEST_CASE("logs: the last word of a program is known by its exit code", "[cli]") {
  LogRecord record = Record("exit 74: torn");
  CHECK_FALSE(IsLastWord(record));
  record.fields = {{"exit_code", int64_t{74}}};
  CHECK(IsLastWord(record));
}

}  // namespace
}  // namespace lockstep::cli
