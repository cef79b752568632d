// Terminals that close, connections that drop, readers that go away or do not read: the job saves and ends, or goes on,
// and loses no step that a SIGTERM would have kept.
#include <fcntl.h>
#include <signal.h>
#include <termios.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "tests/e2e/local_job.h"
#include "tests/e2e/terminal.h"

namespace lockstep::e2e {
namespace {

constexpr absl::Duration kLimit = absl::Seconds(120);
constexpr int kShort = 400;

// Nothing is saved on the way: what a checkpoint holds at the end, the stop has saved.
std::vector<std::string> HangupSettings(int steps) {
  return {absl::StrCat("train.duration=", steps, "steps"), "checkpoint.every=1000000steps"};
}
const std::vector<std::string> kEndless = HangupSettings(1000000);

// `lockstep run` of one worker, with a LocalJob to watch its directory.
struct Watch {
  Watch(const std::string& name, const std::vector<std::string>& settings, const std::function<void()>& in_child)
      : job(name, kJob, {}), process(Words(job.directory(), settings), in_child) {}

  static std::vector<std::string> Words(const std::string& directory, const std::vector<std::string>& settings) {
    std::vector<std::string> words = {kLockstep, "run", kJob, "--workers", "1", "--dir", directory};
    for (const std::string& set : settings) words.insert(words.end(), {"--set", set});
    return words;
  }

  Ended End() {
    const std::optional<Ended> ended = process.Wait(kLimit);
    if (!ended.has_value()) FAIL("lockstep run does not end");
    return *ended;
  }
  int64_t SavedStep() const { return job.Stats().job().committed_step(); }

  LocalJob job;
  Process process;
};

void IntoFile(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  dup2(fd, STDOUT_FILENO);
  dup2(fd, STDERR_FILENO);
}

std::string TempPath(const std::string& name) { return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name); }

TEST_CASE("hangup: a hangup of `lockstep run` saves first, as a SIGTERM does", "[e2e]") {
  Watch run("hup", kEndless, [log = TempPath("hup.log")] { IntoFile(log); });
  run.job.WaitForStep(20);

  run.process.Signal(SIGHUP);

  CHECK(run.End() == Ended{kExitPreempted, 0});
  CHECK(run.SavedStep() >= 20);
}

TEST_CASE("hangup: a chief and a worker alone save first too", "[e2e]") {
  LocalJob job("hup_alone", kJob, kEndless);
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(20);

  job.chief().Signal(SIGHUP);

  CHECK(job.WaitForEnd("chief") == Ended{kExitPreempted, 0});
  CHECK(job.WaitForEnd("worker-0") == Ended{kExitPreempted, 0});
  CHECK(job.Stats().job().committed_step() >= 20);
}

TEST_CASE("hangup: a worker whose connection is lost leaves at a boundary", "[e2e]") {
  LocalJob job("hup_worker", kJob, HangupSettings(kShort));
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(20);

  job.worker(1).Signal(SIGHUP);

  CHECK(job.WaitForEnd("worker-1") == Ended{kExitPreempted, 0});
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.Stats().job().losses() == 0);
}

TEST_CASE("hangup: two signals at once, as `timeout` sends them, are one", "[e2e]") {
  Watch run("timeout", kEndless, [log = TempPath("timeout.log")] { IntoFile(log); });
  run.job.WaitForStep(20);

  run.process.Signal(SIGTERM);
  run.process.Signal(SIGINT);
  run.process.Signal(SIGHUP);

  CHECK(run.End() == Ended{kExitPreempted, 0});
  CHECK(run.SavedStep() >= 20);
}

TEST_CASE("hangup: a hangup that was ignored from the start stays ignored", "[e2e]") {
  Watch run("nohup", HangupSettings(kShort), [log = TempPath("nohup.log")] {
    signal(SIGHUP, SIG_IGN);
    IntoFile(log);
  });
  run.job.WaitForStep(20);

  run.process.Signal(SIGHUP);

  CHECK(run.End() == Ended{});
  CHECK(run.SavedStep() == kShort);
}

TEST_CASE("hangup: a connection that drops saves first", "[e2e]") {
  Terminal terminal(80);
  Watch run("ssh", kEndless, terminal.ForChild());
  run.job.WaitForStep(20);

  terminal.Close();

  CHECK(run.End() == Ended{kExitPreempted, 0});
  CHECK(run.SavedStep() >= 20);
}

TEST_CASE("hangup: under nohup a terminal that is gone takes nothing and the job goes on", "[e2e]") {
  Terminal terminal(80);
  Watch run("dead_terminal", HangupSettings(kShort), [in_child = terminal.ForChild()] {
    signal(SIGHUP, SIG_IGN);
    in_child();
  });
  run.job.WaitForStep(20);

  terminal.Close();

  CHECK(run.End() == Ended{});
  CHECK(run.SavedStep() == kShort);
}

TEST_CASE("hangup: a reader that goes away takes nothing and the job goes on", "[e2e]") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  Watch run("head", HangupSettings(kShort), [out = ends[1]] {
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
  });
  close(ends[1]);
  char byte = 0;
  REQUIRE(read(ends[0], &byte, 1) == 1);

  close(ends[0]);

  CHECK(run.End() == Ended{});
  CHECK(run.SavedStep() == kShort);
}

TEST_CASE("hangup: a pager that does not read stops neither the training nor the end", "[e2e]") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  // Full before the first line.
  REQUIRE(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0);
  const std::string page(4096, 'x');
  while (write(ends[1], page.data(), page.size()) > 0) continue;
  REQUIRE(fcntl(ends[1], F_SETFL, 0) == 0);
  Watch run("pager", HangupSettings(kShort), [out = ends[1]] {
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
  });

  CHECK(run.End() == Ended{});
  CHECK(run.SavedStep() == kShort);
  close(ends[0]);
  close(ends[1]);
}

TEST_CASE("hangup: Ctrl-S stops neither the training nor the end", "[e2e]") {
  Terminal terminal(80);
  Watch run("ctrl_s", HangupSettings(kShort), terminal.ForChild());
  run.job.WaitForStep(20);

  terminal.Type("\x13");

  CHECK(run.End() == Ended{});
  CHECK(run.SavedStep() == kShort);
  // What was shown before it is there, and nothing that came later.
  const std::string shown = terminal.Read();
  CHECK_THAT(shown, Catch::Contains("listening on") && !Catch::Contains("done at step"));
}

TEST_CASE("hangup: a terminal that lets only its foreground write does not stop the chief", "[e2e]") {
  Terminal terminal(80);
  Watch run("tostop", HangupSettings(kShort), [in_child = terminal.ForChild()] {
    in_child();
    termios mode = {};
    tcgetattr(STDOUT_FILENO, &mode);
    mode.c_lflag |= TOSTOP;
    tcsetattr(STDOUT_FILENO, TCSANOW, &mode);
  });

  CHECK(run.End() == Ended{});
  CHECK(run.SavedStep() == kShort);
}

}  // namespace
}  // namespace lockstep::e2e
