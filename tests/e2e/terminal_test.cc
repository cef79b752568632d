// What people and programs see of real processes: the rows of a terminal, the last line of what failed, JSON lines, and
// `lockstep status` of jobs in every state.
#include "tests/e2e/terminal.h"

#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

Words Lines(const std::string& output) {
  return absl::StrSplit(absl::StripTrailingAsciiWhitespace(output), '\n', absl::SkipEmpty());
}

// Everything a run writes to a terminal of `columns`.
std::string OnTerminal(int columns, const std::string& directory, const Words& sets) {
  const Terminal terminal(columns);
  Words words = Command({kLockstep, "run", kJob, "--workers", "1", "--dir", directory}, sets);
  Process run(words, [in_child = terminal.ForChild()] {
    in_child();
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
  });
  std::string shown;
  const absl::Time until = absl::Now() + kLimit;
  while (run.Running()) {
    shown += terminal.Read();
    if (absl::Now() >= until) FAIL("does not end: " << shown);
  }
  shown += terminal.Read();
  REQUIRE(run.Wait(kLimit) == Ended{});
  return shown;
}

TEST_CASE("terminal: the line of progress fits 80 and 40 columns and is one row", "[e2e]") {
  for (const int columns : {80, 40}) {
    CAPTURE(columns);
    const std::string shown = OnTerminal(columns, TempPath("columns" + std::to_string(columns)), Settings());
    CAPTURE(shown);

    int draws = 0;
    for (const std::string& row : Words(absl::StrSplit(shown, absl::ByAnyChar("\r\n")))) {
      if (!absl::EndsWith(row, "\x1b[K") || row == "\x1b[K") continue;
      ++draws;
      CHECK_THAT(row, StartsWith("step "));
      CHECK(row.size() - 3 < static_cast<size_t>(columns));
    }
    CHECK(draws > 0);
    for (const std::string& line : Lines(shown)) {
      // A row that ends is no progress, and the erased one before it does not stay.
      CHECK_FALSE((absl::StrContains(line, "samples/s") && !absl::StrContains(line, "\x1b[K")));
    }
    CHECK_THAT(shown, Contains("\x1b[32mdone at step 20"));
  }
}

TEST_CASE("terminal: Ctrl-C is no error and the last line says where the job stands", "[e2e]") {
  Watched run("ctrl_c", {"run", kJob, "--workers", "1", "--dir", TempPath("ctrl_c")}, Settings("100000steps"));
  run.WaitFor("saved step 10 ");
  run.process().Signal(SIGINT);

  CHECK(run.End() == Ended{kExitPreempted, 0});
  CHECK_THAT(run.Output(), !Contains("error:") && !Contains("the job is done"));
  CHECK_THAT(Lines(run.Output()).back(),
             Contains("stopped at step") && Contains("the same command goes on from there"));
}

TEST_CASE("terminal: a job that was stopped is not called done by its workers", "[e2e]") {
  const std::string directory = TempPath("stopped");
  Watched run("stopped", {"run", kJob, "--workers", "1", "--dir", directory}, Settings("100000steps"));
  run.WaitFor("saved step 10 ");
  CHECK(Run({"stop", "--dir", directory}).code == kExitDone);
  CHECK(run.End() == Ended{});

  const std::string log = Read(directory + "/logs/worker-0.log");
  CHECK_THAT(log, !Contains("the job is done") && Contains("the job ended in order"));
}

TEST_CASE("terminal: the last line of a run is the cause and the remedy, once", "[e2e]") {
  struct Case {
    const char* name;
    const char* set;
    int code;
    const char* cause;
  };
  for (const Case& c : {Case{"nan", "train.optimizer.lr=1000000", kExitBadData, "lower train.optimizer.lr"},
                        Case{"gpu", "resources.device=cuda", kExitBadJob, "GPU"}}) {
    CAPTURE(c.name);
    setenv("LOCKSTEP_CUDA_LIBRARY", "/nonexistent/liblockstep_cuda.so", 1);
    Words sets = Settings();
    sets.push_back(c.set);
    const Result run = Run({"run", kJob, "--workers", "2", "--dir", TempPath(c.name)}, sets);
    unsetenv("LOCKSTEP_CUDA_LIBRARY");
    CAPTURE(run.output);

    CHECK(run.code == c.code);
    const Words lines = Lines(run.output);
    CHECK_THAT(lines.back(), Contains("run: error: exit " + std::to_string(c.code)) && Contains(c.cause));
    CHECK_THAT(run.output, !Contains("the job is done"));
    int last_lines = 0;
    for (const std::string& line : lines) last_lines += absl::StrContains(line, "error: exit ") ? 1 : 0;
    CHECK(last_lines == 1);
  }
}

TEST_CASE("terminal: every JSON line has a time, and progress has numbers", "[e2e]") {
  Words sets = Settings();
  sets.push_back("observe.log.format=json");
  const std::string directory = TempPath("json");
  const Result run = Run({"run", kJob, "--workers", "1", "--dir", directory}, sets);

  REQUIRE(run.code == kExitDone);
  std::map<std::string, int> events;
  for (const std::string& line : Lines(run.output)) {
    CAPTURE(line);
    const json object = json::parse(line);
    CHECK(object["time"].is_string());
    CHECK(object["role"].is_string());
    if (!object.contains("event")) continue;
    ++events[object["event"].get<std::string>()];
    if (object["event"] != "progress") continue;
    CHECK(object["step"].is_number_integer());
    CHECK(object["loss"].is_number());
    CHECK(object["end_step"] == 20);
  }
  CHECK(events["progress"] > 0);
  CHECK(events["saved"] > 0);
  CHECK(events["done"] == 1);
}

json StatusOf(const std::string& directory, int code = kExitDone) {
  const Result status = Run({"status", "--dir", directory, "--json"});
  CAPTURE(status.output);
  CHECK(status.code == code);
  return json::parse(status.output);
}

TEST_CASE("terminal: status tells of running, stopped, killed, silent and finished jobs", "[e2e]") {
  const std::string directory = TempPath("status");
  const Words words = {"run", kJob, "--workers", "1", "--dir", directory};
  {
    Watched run("status_stopped", words, Settings("100000steps"));
    run.WaitFor("saved step 10 ");
    const json running = StatusOf(directory);
    CHECK(running["running"] == true);
    CHECK(running["step"].is_number());
    run.process().Signal(SIGTERM);
    CHECK(run.End() == Ended{kExitPreempted, 0});
  }
  const json stopped = StatusOf(directory);
  CHECK(stopped["phase"] == "STOPPED");
  CHECK(stopped["exit_code"] == kExitPreempted);
  CHECK(stopped["end_step"] == 100000);
  CHECK(stopped["published_step"] >= 10);
  const Result text = Run({"status", "--dir", directory});
  CHECK_THAT(text.output,
             Contains("STOPPED  step ") && Contains("stop requested by SIGTERM") && Contains("goes on from"));

  {
    Watched run("status_silent", words, Settings("100000steps"));
    run.WaitFor("steps from step");
    const std::string holder = Read(directory + "/chief/lock");
    const int chief = std::atoi(holder.substr(holder.find("pid ") + 4).c_str());
    kill(chief, SIGSTOP);
    const json silent = StatusOf(directory, kExitChiefUnreachable);
    CHECK(silent["phase"] == "UNREACHABLE");
    CHECK_THAT(silent["reason"].get<std::string>(), Contains("the chief with pid " + std::to_string(chief)));
    run.process().Signal(SIGKILL);
    run.End();
  }
  // Dated back: a chief of another machine would have written within the last seconds.
  std::filesystem::last_write_time(directory + "/stats/worker_stats.json",
                                   std::filesystem::file_time_type::clock::now() - std::chrono::hours(2));
  const json killed = StatusOf(directory);
  CHECK(killed["phase"] == "NOT_RUNNING");
  CHECK(killed["exit_code"].is_null());
  CHECK_THAT(Run({"status", "--dir", directory}).output, Contains("2h") && Contains("ago"));

  const json done = StatusOf(FinishedJob());
  CHECK(done["phase"] == "DONE");
  CHECK(done["step"] == 20);
  CHECK(done["end_step"] == 20);
  CHECK(done["progressPercentage"] == 100);
  CHECK(Run({"stop", "--dir", FinishedJob()}).code == kExitDone);
}

TEST_CASE("terminal: status --watch follows a job to its end", "[e2e]") {
  const std::string directory = TempPath("watch");
  Watched run("watch_run", {"run", kJob, "--workers", "1", "--dir", directory}, Settings("200steps"));
  run.WaitFor("listening on");
  Watched watch("watch", {"status", "--dir", directory, "--watch", "--json"});

  CHECK(run.End() == Ended{});
  CHECK(watch.End() == Ended{});

  const Words lines = Lines(watch.Output());
  for (const std::string& line : lines) CHECK(json::parse(line)["step"].is_number());
  CHECK(json::parse(lines.back())["phase"] == "DONE");
}

TEST_CASE("terminal: an address where nobody listens is named", "[e2e]") {
  const Result status = Run({"status", "--chief", "127.0.0.1:1", "--token-file", FinishedJob() + "/chief/token"});
  CHECK(status.code == kExitChiefUnreachable);
  CHECK_THAT(status.output, Contains("no chief answers at 127.0.0.1:1"));
}

TEST_CASE("terminal: a worker has the program's name in the process table", "[e2e]") {
  LocalJob job("name", kJob, Settings("100000steps"));
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(1);
  CHECK(Read("/proc/" + std::to_string(job.worker(0).pid()) + "/comm") == "lockstep\n");
}

TEST_CASE("terminal: the command line explains itself", "[e2e]") {
  const Result nothing = Run({});
  CHECK(nothing.code == kExitUsage);
  CHECK_THAT(nothing.output, Contains("Subcommands") && Contains("checkpoint"));
  CHECK(Run({"help"}).output == Run({"--help"}).output);
  CHECK_THAT(Run({"help", "run"}).output, Contains("--workers"));
  CHECK(Run({"version"}).output == Run({"--version"}).output);
  const Result typo = Run({"statsu"});
  CHECK(typo.code == kExitUsage);
  CHECK_THAT(typo.output, Contains("did you mean 'status'?"));
  CHECK_THAT(Run({"run", "a.yaml", "--log", "json"}).output, Contains("unknown option --log"));
}

}  // namespace
}  // namespace lockstep::e2e
