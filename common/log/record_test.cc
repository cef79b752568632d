#include "common/log/record.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

LogRecord Saved() {
  LogRecord record;
  record.at_ms = 1795780801123;
  record.level = LogLevel::warn;
  record.part = "chief";
  record.worker = "worker-1";
  record.generation = "3.7";
  record.step = 4402;
  record.event = "saved";
  record.message = "saved \"it\"\nin time";
  record.fields = {{"seconds", 0.5}, {"exit_code", int64_t{74}}, {"path", "a/b"}};
  return record;
}

TEST_CASE("log record: JSON has everything that is known, and reads back", "[log]") {
  const std::string json = LogRecordJson(Saved());
  CHECK(json ==
        R"({"time":"2026-11-27T12:00:01.123Z","level":"warn","part":"chief","worker":"worker-1","generation":"3.7",)"
        R"("step":4402,"event":"saved","seconds":0.5,"exit_code":74,"path":"a/b","message":"saved \"it\"\nin time"})");

  const auto read = ParseLogRecord(json);
  REQUIRE(read.has_value());
  CHECK(LogRecordJson(*read) == json);
  CHECK(read->at_ms == 1795780801123);
  CHECK(read->step == 4402);
  CHECK(read->worker == "worker-1");
}

TEST_CASE("log record: what is not known is left out, and an event's own step counts", "[log]") {
  LogRecord record;
  record.part = "run";
  record.message = "began";
  CHECK(LogRecordJson(record) ==
        R"({"time":"1970-01-01T00:00:00.000Z","level":"info","part":"run","message":"began"})");

  record = Saved();
  record.fields = {{"step", int64_t{4400}}};
  CHECK(ParseLogRecord(LogRecordJson(record))->step == 4400);
}

TEST_CASE("log record: what is none is refused", "[log]") {
  for (const char* line : {"", "{", "[]", "7", "{}", R"({"time":"2026-11-27T12:00:01.123Z","level":"loud"})",
                           R"({"time":"noon","level":"info"})", R"({"time":7,"level":"info"})"}) {
    CAPTURE(line);
    CHECK_FALSE(ParseLogRecord(line).has_value());
  }
  const auto odd = ParseLogRecord(R"({"time":"2026-11-27T12:00:01Z","level":"info","step":"x","part":[1],"more":{}})");
  REQUIRE(odd.has_value());
  CHECK(odd->step == -1);
  CHECK(odd->part.empty());
}

TEST_CASE("log record: text names a worker, or the part, then where the job stands", "[log]") {
  LogRecord record = Saved();
  record.message = "a\x1b\nb";
  CHECK(LogRecordText(record, false) == "chief 3.7@4402: warn: a\\x1b\n    b");
  CHECK(LogRecordText(record, true) == "chief 3.7@4402: \x1b[33mwarn:\x1b[0m a\\x1b\n    b");
  record.part = "worker";
  CHECK(LogRecordText(record, false) == "worker-1 3.7@4402: warn: a\\x1b\n    b");
  record.generation.clear();
  record.level = LogLevel::info;
  CHECK(LogRecordText(record, false) == "worker-1: a\\x1b\n    b");
  record.part.clear();
  CHECK(LogRecordText(record, false) == "a\\x1b\n    b");
}

}  // namespace
}  // namespace lockstep
