#include "common/log/log.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <string>

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

// What `speak` writes to standard error.
template <typename F>
std::string Captured(F speak) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(stderr);
  const int saved = dup(2);
  dup2(ends[1], 2);
  speak();
  FlushLog();
  std::fflush(stderr);
  dup2(saved, 2);
  close(saved);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  close(ends[0]);
  return text;
}

TEST_CASE("log: a line carries role, severity and message, and lower levels are not evaluated", "[log]") {
  int evaluated = 0;
  const std::string text = Captured([&] {
    InitLog({.role = "worker-1"});
    LS_LOG(warn, "lost ", 3, " peers");
    LS_LOG(debug, "never seen ", ++evaluated);
  });

  CHECK_THAT(text, Contains("worker-1: warn: lost 3 peers\n"));
  CHECK_THAT(text, !Contains("never seen"));
  CHECK(evaluated == 0);
}

TEST_CASE("log: JSON lines escape what would break them", "[log]") {
  const std::string text = Captured([] {
    InitLog({.role = "chief", .format = LogFormat::json});
    LS_LOG(info, "a \"b\"\nc\x01");
  });

  CHECK(text == "{\"level\":\"info\",\"role\":\"chief\",\"message\":\"a \\\"b\\\"\\nc\\u0001\"}\n");
}

TEST_CASE("log: the style changes under a role that stays", "[log]") {
  const std::string text = Captured([] {
    InitLog({.role = "worker-1"});
    SetLogStyle(LogLevel::error, LogFormat::json);
    LS_LOG(warn, "not seen");
    LS_LOG(error, "seen");
  });

  CHECK(text == "{\"level\":\"error\",\"role\":\"worker-1\",\"message\":\"seen\"}\n");
}

TEST_CASE("log: the first cause is the last line, later failures are its consequences", "[log]") {
  const std::string text = Captured([] {
    InitLog({.role = "chief"});
    ReportFailure(absl::DataLossError("shard 3 is torn"));
    ReportFailure(absl::AbortedError("nothing to publish"));
    WriteLastLine(absl::AbortedError("nothing to publish"), 74);
  });

  CHECK_THAT(text, Contains("(consequence) nothing to publish"));
  CHECK_THAT(text, Catch::Matchers::EndsWith("exit 74: shard 3 is torn\n"));
  CHECK(FirstFailure().message() == "shard 3 is torn");
}

}  // namespace
}  // namespace lockstep
