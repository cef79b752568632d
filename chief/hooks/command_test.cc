#include "chief/hooks/command.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

CommandEnd Shell(const std::string& script, Command command = {}) {
  signal(SIGPIPE, SIG_IGN);
  command.words = {"/bin/sh", "-c", script};
  return RunCommand(command, [] { return false; });
}

// Far beyond what a command here takes: a test that waits for it fails.
Command Limited(absl::Duration limit, absl::Duration kill_after = absl::Minutes(10)) {
  Command command;
  command.limit = limit;
  command.kill_after = kill_after;
  return command;
}

TEST_CASE("command: it reads its input, and both streams are kept in their order", "[hooks]") {
  Command command;
  command.input = "{\"step\": 7}\n";

  const CommandEnd end = Shell("cat; echo to error >&2; echo done", command);

  CHECK(end.well);
  CHECK(end.how == "exit code 0");
  CHECK(end.output == "{\"step\": 7}\nto error\ndone\n");
  CHECK(end.cut == 0);
}

TEST_CASE("command: how it ended is told", "[hooks]") {
  CHECK(Shell("exit 3").how == "exit code 3");
  CHECK_FALSE(Shell("exit 3").well);
  CHECK_THAT(Shell("kill -9 $$").how, Contains("signal 9"));
  Command missing;
  missing.words = {"/no/such/command"};
  const CommandEnd end = RunCommand(missing, [] { return false; });
  CHECK_FALSE(end.well);
  CHECK_THAT(end.how, Contains("cannot be started: /no/such/command: No such file"));
}

TEST_CASE("command: one that takes too long is ended with its children, whatever it ignores", "[hooks]") {
  const CommandEnd polite = Shell("sleep 1000 & wait", Limited(absl::Milliseconds(50)));
  CHECK_FALSE(polite.well);
  CHECK_THAT(polite.how, Contains("signal 15") && Contains("took more than 50ms"));

  // Its child has the output open, so that only SIGKILL to the group ends both.
  const CommandEnd stubborn = Shell("trap '' TERM; sleep 1000 & while :; do sleep 1000; done",
                                    Limited(absl::Milliseconds(50), /*kill_after=*/absl::Milliseconds(50)));
  CHECK_THAT(stubborn.how, Contains("signal 9"));
}

TEST_CASE("command: what it leaves behind in its group is killed, and does not hold its end", "[hooks]") {
  const CommandEnd end = Shell("sleep 1000 & echo $!", Limited(absl::Minutes(10)));

  CHECK(end.well);
  int left = 0;
  REQUIRE(absl::SimpleAtoi(end.output, &left));
  // It is a zombie until its new parent has looked, and then gone.
  while (kill(left, 0) == 0) sched_yield();
}

// Also of one that nobody has waited for yet.
bool Ended(int process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/stat"));
  std::string stat;
  std::getline(file, stat);  // reads nothing where it went away meanwhile
  return stat.empty() || absl::StrContains(stat, ") Z ");
}

TEST_CASE("command: when the process that runs it is killed, it ends, and so does what it had started", "[hooks]") {
  const std::string fifo = absl::StrCat(std::getenv("TEST_TMPDIR"), "/processes");
  REQUIRE(system(absl::StrCat("rm -f ", fifo, "; mkfifo ", fifo).c_str()) == 0);
  const pid_t runner = fork();
  if (runner == 0) {
    Shell(absl::StrCat("trap '' TERM; sleep 1000 & echo $! $$ > ", fifo, "; wait"), Limited(absl::Minutes(10)));
    _exit(0);
  }
  int child = 0, shell = 0;
  std::ifstream(fifo) >> child >> shell;
  REQUIRE(child > 0);
  REQUIRE(shell > 0);
  CHECK_FALSE(Ended(child));

  kill(runner, SIGKILL);
  waitpid(runner, nullptr, 0);

  while (!Ended(shell)) sched_yield();
  while (!Ended(child)) sched_yield();
}

TEST_CASE("command: what it had started ends, however early the process that runs it is killed", "[hooks]") {
  const std::string path = absl::StrCat(std::getenv("TEST_TMPDIR"), "/child");
  // The command kills who runs it, which may not have done anything since it started the command.
  const std::string script = absl::StrCat("trap '' TERM; sleep 1000 & echo $! > ", path, "; kill -9 $PPID; wait");
  for (int i = 0; i < 50; ++i) {
    const pid_t runner = fork();
    if (runner == 0) {
      Shell(script, Limited(absl::Minutes(10)));
      _exit(0);
    }
    int status = 0;
    waitpid(runner, &status, 0);
    REQUIRE(WIFSIGNALED(status));
    int child = 0;
    std::ifstream(path) >> child;
    REQUIRE(child > 0);

    while (!Ended(child)) sched_yield();
  }
}

TEST_CASE("command: whoever guards it leaves when it has ended", "[hooks]") {
  for (int i = 0; i < 3; ++i) Shell("true");

  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);  // no child is left
}

TEST_CASE("command: a flood of output is read to its end and kept to its limit", "[hooks]") {
  Command command;
  command.most_output = 1000;

  const CommandEnd end = Shell("head -c 5000000 /dev/zero", command);

  CHECK(end.well);
  CHECK(end.output.size() == 1000);
  CHECK(end.cut == 5000000 - 1000);
  // One that never ends is ended in time.
  Command endless = Limited(absl::Milliseconds(100));
  endless.most_output = 10;
  CHECK_FALSE(Shell("yes", endless).well);
}

TEST_CASE("command: one that reads nothing gets nothing", "[hooks]") {
  Command command;
  command.input = std::string(1 << 20, 'x');

  CHECK(Shell("exit 0", command).well);
  CHECK(Shell("exec <&-; echo here", command).output == "here\n");
}

TEST_CASE("command: it has no other descriptors, no blocked or ignored signals, and not the job's token", "[hooks]") {
  const int leaked = fcntl(STDOUT_FILENO, F_DUPFD, 77);  // is not closed on exec
  REQUIRE(leaked >= 77);
  setenv("LOCKSTEP_TOKEN", "secret", 1);
  setenv("LOCKSTEP_OTHER", "known", 1);
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  signal(SIGHUP, SIG_IGN);

  const CommandEnd fds = Shell("ls /proc/$$/fd");
  const CommandEnd variables = Shell("echo \"[$LOCKSTEP_TOKEN] [$LOCKSTEP_OTHER]\"");
  const CommandEnd signals = Shell("grep -hE 'SigBlk|SigIgn' /proc/self/status | cut -f 2");

  CHECK_THAT(fds.output, Contains("0\n1\n") && !Contains(absl::StrCat(leaked, "\n")));
  CHECK(variables.output == "[] [known]\n");
  for (const absl::string_view mask : absl::StrSplit(signals.output, '\n', absl::SkipEmpty())) {
    uint64_t bits = 0;
    REQUIRE(absl::SimpleHexAtoi(mask, &bits));
    CHECK((bits & 0x7fffffff) == 0);  // beyond them are those of the C library itself
  }
  close(leaked);
  unsetenv("LOCKSTEP_TOKEN");
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
}

}  // namespace
}  // namespace lockstep::chief
