// In processes of their own, because what is captured stays so.
#include "common/log/foreign_output.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/log/log.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

struct Ended {
  int status = 0;
  std::vector<std::string> lines;  // of both outputs
};

// Runs `body` in a child whose outputs are a pipe.
Ended InChild(const std::function<void()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::fflush(nullptr);
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) dup2(ends[1], fd);
    close(ends[0]);
    close(ends[1]);
    signal(SIGABRT, SIG_DFL);  // the test's own
    WrapForeignOutput();
    body();
    FlushLog();
    _exit(0);
  }
  close(ends[1]);
  std::string all;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) all.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  Ended ended;
  REQUIRE(waitpid(child, &ended.status, 0) == child);
  ended.lines = absl::StrSplit(all, '\n', absl::SkipEmpty());
  return ended;
}

TEST_CASE("foreign output: where lines are JSON, those of others become objects and objects stay", "[log]") {
  const Ended ended = InChild([] {
    InitLog({.part = "worker", .worker = "worker-1", .format = LogFormat::json});
    LS_LOG(info, "own");
    FlushLog();
    std::fprintf(stderr, "library: oh\n");
    std::printf("{\"time\":\"2026-11-27T12:00:00Z\",\"level\":\"info\",\"message\":\"of a child\"}\n");
    std::fflush(nullptr);
    std::fprintf(stderr, "no end");
    FlushLog();
  });

  CHECK(ended.status == 0);
  std::vector<std::string> messages;
  for (const std::string& line : ended.lines) {
    CAPTURE(line);
    const auto json = nlohmann::json::parse(line, nullptr, false);
    REQUIRE(json.is_object());
    messages.push_back(json["message"]);
  }
  REQUIRE(messages.size() == 4);
  CHECK(messages[0] == "own");
  CHECK(messages[1] == "library: oh");
  CHECK(messages[2] == "of a child");
  CHECK(messages[3] == "no end");
}

TEST_CASE("foreign output: a broken invariant is told as an object, though the process aborts", "[log]") {
  const Ended ended = InChild([] {
    InitLog({.part = "chief", .format = LogFormat::json});
    LS_CHECK(1 + 1 == 3, "numbers are numbers");
  });

  CHECK(WIFSIGNALED(ended.status));
  CHECK(WTERMSIG(ended.status) == SIGABRT);
  REQUIRE(ended.lines.size() == 1);
  const auto json = nlohmann::json::parse(ended.lines[0], nullptr, false);
  REQUIRE(json.is_object());
  CHECK(json["part"] == "chief");
  CHECK_THAT(json["message"].get<std::string>(), Catch::Matchers::Contains("numbers are numbers"));
}

TEST_CASE("foreign output: where lines are text nothing is changed", "[log]") {
  const Ended ended = InChild([] {
    InitLog({.part = "chief", .format = LogFormat::text});
    std::fprintf(stderr, "library: oh\n");
  });

  CHECK(ended.lines == std::vector<std::string>{"library: oh"});
}

}  // namespace
}  // namespace lockstep
