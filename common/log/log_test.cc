#include "common/log/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/log/escape.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

// What `speak` writes to the descriptor `fd`.
template <typename F>
std::string CapturedOf(int fd, F speak) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const int saved = dup(fd);
  dup2(ends[1], fd);
  speak();
  FlushLog();
  dup2(saved, fd);
  close(saved);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(ends[0]);
  return text;
}

// What `speak` writes to standard error.
template <typename F>
std::string Captured(F speak) {
  return CapturedOf(2, speak);
}

TEST_CASE("log: a line carries speaker, severity and message, and lower levels are not evaluated", "[log]") {
  int evaluated = 0;
  const std::string text = Captured([&] {
    InitLog({.part = "worker", .worker = "worker-1"});
    LS_LOG(warn, "lost ", 3, " peers");
    LS_LOG(debug, "never seen ", ++evaluated);
  });

  CHECK_THAT(text, Contains("worker-1: warn: lost 3 peers\n"));
  CHECK_THAT(text, !Contains("never seen"));
  CHECK(evaluated == 0);
}

TEST_CASE("log: JSON lines escape what would break them", "[log]") {
  const std::string text = Captured([] {
    InitLog({.part = "chief", .format = LogFormat::json});
    LS_LOG(info, "a \"b\"\nc\x01");
  });

  const auto json = nlohmann::json::parse(text);
  CHECK(json["level"] == "info");
  CHECK(json["part"] == "chief");
  CHECK(json["message"] == "a \"b\"\nc\x01");
  absl::Time when;
  CHECK(absl::ParseTime(absl::RFC3339_full, json["time"].get<std::string>(), &when, nullptr));
  CHECK(absl::AbsDuration(absl::Now() - when) < absl::Hours(1));
}

TEST_CASE("log: bytes that are no UTF-8 leave valid JSON", "[log]") {
  const std::string text = Captured([] {
    InitLog({.part = "chief", .format = LogFormat::json});
    LS_LOG(info, "caf\xe9");
  });

  CHECK(nlohmann::json::parse(text)["message"] == "caf\xef\xbf\xbd");
}

TEST_CASE("log: text shows control characters and can forge no line", "[log]") {
  const std::string text = Captured([] {
    InitLog({.part = "chief"});
    LS_LOG(info, "a\x1b[2J\rb\x7f\xc2\x9b\xc3\xa9\tc\n12:00:00.000 chief: forged");
  });

  CHECK_THAT(text, Contains("chief: a\\x1b[2J\\x0db\\x7f\\x9b\xc3\xa9\tc\n    12:00:00.000 chief: forged\n"));
  CHECK(EscapeControls("\xc2") == "\xc2");
}

TEST_CASE("log: an event is text for people and numbers for programs", "[log]") {
  const LogEvent event{.name = "progress",
                       .text = "step 3",
                       .fields = {{"step", int64_t{3}}, {"loss", 0.5}, {"eta_seconds", 1.0 / 0.0}, {"best", "b"}}};
  const std::string text = CapturedOf(1, [&] {
    InitLog({.part = "chief"});
    LogEventLine(event);
  });
  const std::string json_text = CapturedOf(1, [&] {
    InitLog({.part = "chief", .format = LogFormat::json});
    LogEventLine(event);
  });

  CHECK(text == "step 3\n");
  const auto json = nlohmann::json::parse(json_text);
  CHECK(json["event"] == "progress");
  CHECK(json["step"].is_number_integer());
  CHECK(json["loss"] == 0.5);
  CHECK(json["eta_seconds"].is_null());
  CHECK(json["best"] == "b");
  CHECK(json["message"] == "step 3");
  CHECK(json.contains("time"));
}

TEST_CASE("log: the style changes under a part and a name that stay", "[log]") {
  const std::string text = Captured([] {
    InitLog({.part = "worker", .worker = "worker-1"});
    SetLogStyle(LogLevel::error, LogFormat::json);
    LS_LOG(warn, "not seen");
    LS_LOG(error, "seen");
  });

  CHECK_THAT(text, !Contains("not seen"));
  CHECK_THAT(text, Contains("\"level\":\"error\",\"part\":\"worker\",\"worker\":\"worker-1\",\"message\":\"seen\"}\n"));
}

TEST_CASE("log: every line says where the job stands, once that is known", "[log]") {
  const auto speak = [](LogFormat format) {
    return Captured([format] {
      InitLog({.part = "worker", .format = format});
      LS_LOG(info, "waits");
      SetLogWorker("worker-1");
      SetLogPosition(3, 7, 4402);
      LS_LOG(warn, "overflow");
      SetLogPosition(0, 0, 4402);
      LS_LOG(info, "alone");
    });
  };

  const std::string text = speak(LogFormat::text);
  CHECK_THAT(text, Contains(" worker: waits\n"));
  CHECK_THAT(text, Contains(" worker-1 3.7@4402: warn: overflow\n"));
  CHECK_THAT(text, Contains(" worker-1: alone\n"));
  const std::vector<std::string> lines = absl::StrSplit(speak(LogFormat::json), '\n', absl::SkipEmpty());
  REQUIRE(lines.size() == 3);
  const auto first = nlohmann::json::parse(lines[0]);
  CHECK_FALSE(first.contains("worker"));
  CHECK_FALSE(first.contains("generation"));
  CHECK_FALSE(first.contains("step"));
  const auto second = nlohmann::json::parse(lines[1]);
  CHECK(second["part"] == "worker");
  CHECK(second["worker"] == "worker-1");
  CHECK(second["generation"] == "3.7");
  CHECK(second["step"] == 4402);
  InitLog({.part = "chief"});
}

TEST_CASE("log: the tap gets lines and events with all they say, from level info on, whatever is written", "[log]") {
  std::vector<LogRecord> taken;
  const std::string text = Captured([&] {
    InitLog({.part = "chief", .level = LogLevel::error});
    SetLogTap([&taken](const LogRecord& record) { taken.push_back(record); });
    SetLogPosition(1, 2, 30);
    LS_LOG(debug, "too small");
    LS_LOG(info, "formed");
    LogLineAbout(LogLevel::warn, "worker-1", "worker-1: lost");
    WriteLastLine(absl::DataLossError("shard 3 is torn"), 74);
  });
  const std::string events = CapturedOf(1, [] {
    LogEventLine({.name = "progress", .text = "step 3", .regular = true});
    LogEventLine({.name = "saved", .text = "saved step 4", .fields = {{"step", int64_t{4}}}});
  });
  SetLogTap(nullptr);
  LS_LOG(error, "not taken any more");

  REQUIRE(taken.size() == 4);
  CHECK(taken[0].message == "formed");
  CHECK(taken[0].generation == "1.2");
  CHECK(taken[1].worker == "worker-1");
  CHECK(taken[1].level == LogLevel::warn);
  CHECK_THAT(taken[2].message, Catch::Matchers::StartsWith("exit 74: "));
  CHECK(taken[3].event == "saved");
  CHECK_THAT(text, !Contains("formed") && !Contains("lost") && Contains("exit 74: "));
  CHECK_THAT(events, Contains("step 3\n"));
  CHECK_FALSE(LogEnabled(LogLevel::info));
}

TEST_CASE("log: variables choose the style, where nothing else does", "[log]") {
  CHECK_FALSE(ParseLogVariables(nullptr, nullptr)->format.has_value());
  CHECK_FALSE(ParseLogVariables("", "")->level.has_value());
  CHECK(ParseLogVariables("json", nullptr)->format == LogFormat::json);
  CHECK(ParseLogVariables("text", "warn")->level == LogLevel::warn);
  CHECK_THAT(std::string(ParseLogVariables("yaml", nullptr).status().message()),
             Contains("LOCKSTEP_LOG_FORMAT is 'yaml'; it may be text or json"));
  CHECK_THAT(std::string(ParseLogVariables(nullptr, "loud").status().message()),
             Contains("LOCKSTEP_LOG_LEVEL is 'loud'; it may be debug, info, warn or error"));

  setenv("LOCKSTEP_LOG_FORMAT", "json", 1);
  setenv("LOCKSTEP_LOG_LEVEL", "warn", 1);
  InitLog({.part = "chief"});
  CHECK(CurrentLogFormat() == LogFormat::json);
  CHECK_FALSE(LogEnabled(LogLevel::info));
  SetLogStyle(LogLevel::debug, std::nullopt);
  CHECK(CurrentLogFormat() == LogFormat::json);
  CHECK(LogEnabled(LogLevel::debug));
  SetLogStyle(std::nullopt, LogFormat::text);
  CHECK(CurrentLogFormat() == LogFormat::text);
  CHECK_FALSE(LogEnabled(LogLevel::info));
  unsetenv("LOCKSTEP_LOG_FORMAT");
  unsetenv("LOCKSTEP_LOG_LEVEL");
  InitLog({.part = "chief"});
}

TEST_CASE("log: the first cause is the last line, later failures are its consequences", "[log]") {
  const std::string text = Captured([] {
    InitLog({.part = "chief"});
    ReportFailure(absl::DataLossError("shard 3 is torn"));
    ReportFailure(absl::AbortedError("nothing to publish"));
    WriteLastLine(absl::AbortedError("nothing to publish"), 74);
  });

  CHECK_THAT(text, Contains("(consequence) nothing to publish"));
  CHECK_THAT(text, Catch::Matchers::EndsWith("exit 74: shard 3 is torn\n"));
  CHECK(text.find("shard 3 is torn") == text.rfind("shard 3 is torn"));
  CHECK(FirstFailure().message() == "shard 3 is torn");
}

// Has `speak` write 20 lines of some 100 kB to the descriptor `fd`, more than waits for a reader, then one that ends
// with `last` once there is room again. What was written, by lines.
template <typename F>
std::vector<std::string> WithLinesDropped(int fd, F speak, const std::string& last) {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  std::fflush(nullptr);
  const int saved = dup(fd);
  dup2(ends[1], fd);
  const std::string line(100'000, 'l');
  for (int i = 0; i < 20; ++i) speak(line);
  std::string text;
  std::vector<char> buffer(1 << 16);
  const auto read_some = [&] {
    const ssize_t n = read(ends[0], buffer.data(), buffer.size());
    REQUIRE(n > 0);
    text.append(buffer.data(), static_cast<size_t>(n));
  };
  // Ten lines wait at least; of them less than half is left then.
  while (text.size() < 9 * line.size()) read_some();
  speak(last);
  while (text.find(last) == std::string::npos) read_some();
  FlushLog();
  dup2(saved, fd);
  for (const int end : {saved, ends[0], ends[1]}) close(end);
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST_CASE("log: what was dropped is counted and told before the next line", "[log]") {
  InitLog({.part = "chief"});
  const std::vector<std::string> lines = WithLinesDropped(
      2, [](const std::string& text) { LS_LOG(info, text); }, "read again");

  REQUIRE(lines.size() > 2);
  const size_t dropped = 20 - (lines.size() - 2);
  CHECK(dropped > 0);
  CHECK_THAT(lines[lines.size() - 2].substr(0, 200),
             Contains(absl::StrCat("chief: warn: not written, because nobody read this output: ", dropped,
                                   " lines of the log and 0 of progress")));
}

TEST_CASE("log: programs get the numbers of dropped lines and of dropped progress", "[log]") {
  InitLog({.part = "chief", .format = LogFormat::json});
  const auto speak = [](const std::string& text) {
    LogEventLine({.name = "progress", .text = text, .regular = text != "read again"});
  };
  const std::vector<std::string> lines = WithLinesDropped(1, speak, "read again");
  InitLog({.part = "chief"});

  REQUIRE(lines.size() > 2);
  auto told = nlohmann::json::parse(lines[lines.size() - 2]);
  CHECK(told["level"] == "warn");
  CHECK(told["dropped_lines"] == 0);
  CHECK(told["dropped_progress"] == 20 - (lines.size() - 2));
}

TEST_CASE("log: a supervisor is handed the cause, and says it in this process's place", "[log]") {
  int ends[2];
  REQUIRE(pipe(ends) == 0);

  const std::string text = Captured([&] {
    InitLog({.part = "chief"});
    HandOverLastLine(ends[1], /*also_logged=*/false);
    WriteLastLine(absl::DataLossError("shard 3 is torn"), 74);
  });
  close(ends[1]);
  HandOverLastLine(-1, true);

  CHECK(text.empty());
  char cause[64] = {};
  CHECK(read(ends[0], cause, sizeof cause - 1) > 0);
  CHECK(std::string(cause) == "shard 3 is torn");
  close(ends[0]);
}

}  // namespace
}  // namespace lockstep
