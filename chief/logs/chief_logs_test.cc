#include "chief/logs/chief_logs.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "chief/logs/log_keeper.h"
#include "common/log/log.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {
namespace {

LogRecord Line(const std::string& message, LogLevel level = LogLevel::info) {
  LogRecord record;
  record.at_ms = 1000;
  record.level = level;
  record.part = "chief";
  record.generation = "1.2";
  record.step = 30;
  record.message = message;
  return record;
}

std::vector<std::string> MessagesOf(const std::vector<ChiefLogLine>& lines) {
  std::vector<std::string> messages;
  for (const ChiefLogLine& line : lines) messages.push_back(line.message);
  return messages;
}

TEST_CASE("chief logs: what chiefs said is read back in their order, with the newest lines last", "[logs]") {
  MemoryStorage storage;
  REQUIRE(ReadChiefLogs(storage, 10).value().empty());  // no chief kept any
  REQUIRE(storage.CreateDirectories(kChiefLogFolder).ok());
  for (const int64_t term : {1, 2}) {
    LogKeeper keeper;
    LineFiles files(storage, kChiefLogFolder, term, {.file_bytes = 300, .files = 16});
    for (int i = 1; i <= 3; ++i) {
      keeper.Keep(Line(std::to_string(10 * term + i), i == 2 ? LogLevel::warn : LogLevel::info));
      REQUIRE(files.Append(keeper.Take()).ok());
    }
  }

  CHECK(MessagesOf(*ReadChiefLogs(storage, 10)) == std::vector<std::string>{"11", "12", "13", "21", "22", "23"});
  CHECK(MessagesOf(*ReadChiefLogs(storage, 2)) == std::vector<std::string>{"22", "23"});
  CHECK(MessagesOf(*ReadChiefLogs(storage, 10, LogLevel::warn)) == std::vector<std::string>{"12", "22"});
  CHECK(ReadChiefLogs(storage, 1)->front().generation == "1.2");
}

TEST_CASE("chief logs: a reader gives each line once, and passes over half a line and damage", "[logs]") {
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(kChiefLogFolder).ok());
  LineFiles files(storage, kChiefLogFolder, 1, {});
  ChiefLogReader reader;
  std::vector<std::string> seen;
  const auto read = [&] {
    return reader.ReadNew(storage, [&](const ChiefLogLine& line) { seen.push_back(line.message); }).ok();
  };
  const std::string second = LogRecordJson(Line("b")) + "\n";

  REQUIRE(files.Append(LogRecordJson(Line("a")) + "\nno JSON\n" + second.substr(0, 20)).ok());
  REQUIRE(read());
  CHECK(seen == std::vector<std::string>{"a"});
  CHECK(reader.damaged() == 1);
  REQUIRE(files.Append(second.substr(20)).ok());
  REQUIRE(read());
  REQUIRE(read());

  CHECK(seen == std::vector<std::string>{"a", "b"});
}

TEST_CASE("chief logs: what is kept for the storage is bounded, and a gap says how much is missing", "[logs]") {
  LogKeeper keeper(4096);
  for (int i = 0; i < 1000; ++i) keeper.Keep(Line(std::string(100, 'x')));

  const std::string taken = keeper.Take();
  CHECK(taken.size() < 4096 + 512);
  MemoryStorage storage;
  REQUIRE(storage.CreateDirectories(kChiefLogFolder).ok());
  REQUIRE(LineFiles(storage, kChiefLogFolder, 1, {}).Append(taken).ok());
  const std::vector<ChiefLogLine> lines = *ReadChiefLogs(storage, 1000);
  REQUIRE(lines.size() > 1);
  CHECK(lines.back().level == LogLevel::warn);
  REQUIRE(lines.back().fields.size() == 1);
  CHECK(std::get<int64_t>(lines.back().fields[0].second) + static_cast<int64_t>(lines.size()) - 1 == 1000);

  keeper.Keep(Line("again"));
  CHECK(keeper.Take() == LogRecordJson(Line("again")) + "\n");
  CHECK(keeper.Take().empty());
}

TEST_CASE("chief logs: the log of a process reaches its keeper", "[logs]") {
  LogKeeper keeper;
  InitLog({.part = "chief"});
  SetLogTap([&keeper](const LogRecord& record) { keeper.Keep(record); });
  LS_LOG(info, "hello");
  SetLogTap(nullptr);
  LS_LOG(info, "not kept");

  const auto line = ParseLogRecord(keeper.Take());
  REQUIRE(line.has_value());
  CHECK(line->message == "hello");
  CHECK(line->part == "chief");
}

}  // namespace
}  // namespace lockstep::chief
