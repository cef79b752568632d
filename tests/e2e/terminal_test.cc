// What people and programs see of real processes: the rows of a terminal, the last line of what failed, JSON lines.
#include "tests/e2e/terminal.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using nlohmann::json;

constexpr char kNoLibrary[] = "/nonexistent/liblockstep_cuda.so";

int CountOf(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// Everything a run writes to a terminal of `columns`.
std::string OnTerminal(int columns, const std::string& directory, const Words& sets, const char* no_color = nullptr) {
  const Terminal terminal(columns);
  // So late a kill only has the run say at its end that there was none.
  const Words words =
      Command({kLockstep, "run", kJob, "--workers", "1", "--dir", directory, "--kill-worker-every", "1h"}, sets);
  Process run(words, terminal.ForChild(no_color));
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

TEST_CASE("terminal: a warning is yellow where colours are wanted, and nothing has a colour where not", "[e2e]") {
  Words sets = Settings();
  sets.push_back("data.normalize=null");

  const std::string colours = OnTerminal(80, TempPath("colours"), sets);
  const std::string plain = OnTerminal(80, TempPath("no_colours"), sets, "1");

  CHECK_THAT(colours, Contains("\x1b[33mwarn:\x1b[0m"));
  CHECK_THAT(plain, Contains("warn:") && !Contains("\x1b[3") && !Contains("\x1b[1"));
  CHECK_THAT(plain, Contains("\x1b[K"));  // a line is rewritten there too
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

TEST_CASE("terminal: a chief that is stopped while its storage refuses says so", "[e2e]") {
  const std::string directory = CopyOfFinishedJob("refused");
  const Terminal terminal(80);
  Process chief(Command({kLockstep, "chief", kJob, "--dir", directory}, Settings("40steps")),
                [in_child = terminal.ForChild()] {
                  in_child();
                  signal(SIGXFSZ, SIG_IGN);
                  const rlimit nothing = {0, 0};
                  setrlimit(RLIMIT_FSIZE, &nothing);
                });
  std::string shown;
  const absl::Time until = absl::Now() + kLimit;
  while (!absl::StrContains(shown, "a signal ends the waiting")) {
    shown += terminal.Read();
    if (!chief.Running() || absl::Now() >= until) FAIL("does not wait: " << shown);
  }

  chief.Signal(SIGTERM);

  CHECK(chief.Wait(kLimit) == Ended{kExitPreempted, 0});
  shown += terminal.Read();
  CHECK_THAT(shown, Contains("stopped while the storage refuses") && !Contains("exit 75"));
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
                        Case{"gpu", "resources.device=cuda", kExitBadJob, kNoLibrary}}) {
    CAPTURE(c.name);
    setenv("LOCKSTEP_CUDA_LIBRARY", kNoLibrary, 1);
    Words sets = Settings();
    sets.push_back(c.set);
    const Result run = Run({"run", kJob, "--workers", "2", "--dir", TempPath(c.name)}, sets);
    unsetenv("LOCKSTEP_CUDA_LIBRARY");
    CAPTURE(run.output);

    CHECK(run.code == c.code);
    const Words lines = Lines(run.output);
    CHECK_THAT(lines.back(), Contains("run: error: exit " + std::to_string(c.code)) && Contains(c.cause));
    CHECK_THAT(run.output, !Contains("the job is done"));
    CHECK(CountOf(run.output, "error: exit ") == 1);
    // The chief has told it when it happened.
    int said_by_run = 0;
    for (const std::string& line : lines) {
      said_by_run += absl::StrContains(line, " run: ") ? CountOf(line, c.cause) : 0;
    }
    CHECK(said_by_run == 1);
    // Nobody stopped it, and the same command would end the same way.
    CHECK_THAT(run.output, !Contains("stop requested") && !Contains("the same command goes on"));
    if (c.code != kExitBadJob) continue;
    for (const char* worker : {"worker-0", "worker-1"}) {
      CAPTURE(worker);
      CHECK(CountOf(run.output, std::string("refused ") + worker) == 1);
    }
    CHECK(CountOf(run.output, c.cause) == 3);  // as two refusals and as the end
  }
}

TEST_CASE("terminal: the last line of a chief alone, and of a worker alone, is the cause, once", "[e2e]") {
  Words diverges = Settings();
  diverges.push_back("train.optimizer.lr=1000000");
  LocalJob nan("nan_alone", kJob, diverges);
  nan.StartChief(1);
  nan.StartWorker(0);
  CHECK(nan.WaitForEnd("chief") == Ended{kExitBadData, 0});
  const std::string chief = nan.LogOf("chief");
  CAPTURE(chief);
  CHECK_THAT(Lines(chief).back(),
             Contains("chief 1.") && Contains(": error: exit 65: ") && Contains("lower train.optimizer.lr"));
  CHECK(CountOf(chief, "exit 65") == 1);
  CHECK_THAT(chief, !Contains("stop requested"));

  Words gpu = Settings();
  gpu.push_back("resources.device=cuda");
  LocalJob none("gpu_alone", kJob, gpu);
  setenv("LOCKSTEP_CUDA_LIBRARY", kNoLibrary, 1);
  none.StartChief(1);
  none.StartWorker(0);
  unsetenv("LOCKSTEP_CUDA_LIBRARY");
  CHECK(none.WaitForEnd("worker-0") == Ended{kExitBadJob, 0});
  const std::string worker = none.LogOf("worker-0");
  CAPTURE(worker);
  CHECK_THAT(Lines(worker).back(), Contains("worker-0: error: exit 78: ") && Contains(kNoLibrary));
  CHECK(CountOf(worker, kNoLibrary) == 1);
}

// The last of the lines, each of which is an object.
json LastObject(const std::string& output) {
  json last;
  for (const std::string& line : Lines(output)) {
    CAPTURE(line);
    last = json::parse(line, nullptr, /*allow_exceptions=*/false);
    CHECK(last.is_object());
  }
  return last;
}

TEST_CASE("terminal: a JSON run that fails says everything as JSON, the cause last with its exit code", "[e2e]") {
  const std::string file = TempPath("json.file");
  Write(file, "");
  struct Case {
    const char* name;
    std::string directory;
    Words sets;
    int code;
    const char* cause;
  };
  for (const Case& c :
       {Case{"directory", file + "/x", {}, kExitStorage, "cannot be written"},
        Case{"mistakes", TempPath("json.mistakes"), {"train.seed=x", "model.loss=guess"}, kExitBadJob, "train.seed"},
        Case{"diverges", TempPath("json.nan"), {"train.optimizer.lr=1000000"}, kExitBadData, "lower train.opt"}}) {
    CAPTURE(c.name);
    Words sets = Settings();
    sets.push_back("observe.log.format=json");
    sets.insert(sets.end(), c.sets.begin(), c.sets.end());
    const Result run = Run({"run", kJob, "--workers", "1", "--dir", c.directory}, sets);
    CAPTURE(run.output);

    CHECK(run.code == c.code);
    const json last = LastObject(run.output);
    CHECK(last["level"] == "error");
    CHECK(last["part"] == "run");
    CHECK(last["exit_code"] == c.code);
    CHECK_THAT(last["message"].get<std::string>(), Contains(c.cause));
  }
}

TEST_CASE("terminal: JSON lines on a terminal have nothing before them", "[e2e]") {
  Words sets = Settings();
  sets.push_back("observe.log.format=json");
  const std::string shown = OnTerminal(80, TempPath("json.terminal"), sets);

  CHECK_THAT(shown, !Contains("\x1b"));
  CHECK(LastObject(shown)["event"] == "kills");
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
    CHECK(object["part"].is_string());
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
