// Real child processes: small shell scripts stand where chief and workers will be.
#include "deploy/supervisor/supervisor.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/liveness/dump.h"

namespace lockstep::supervisor {
namespace {

std::string Scratch(const std::string& name) {
  return absl::StrCat(std::getenv("TEST_TMPDIR"), "/", name, ".", getpid());
}

SupervisorOptions Shell(std::string chief, std::string worker, int workers) {
  SupervisorOptions options;
  options.policy.workers = workers;
  options.command = [=](const Role& role) {
    return std::vector<std::string>{"/bin/sh", "-c", role.chief ? chief : worker};
  };
  options.report_exit = [](const ReportExit&) {};
  options.log_path = [](const Role&) { return std::string(); };
  options.read_step = [] { return std::optional<int64_t>(); };
  options.say = [](const std::string&) {};
  return options;
}

std::string ReadAll(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST_CASE("supervisor: the run ends with the chief's code after every worker has ended", "[supervisor]") {
  CHECK(Supervisor(Shell("exit 0", "exit 0", 2)).Run().value() == 0);
  CHECK(Supervisor(Shell("exit 78", "exec cat /dev/zero >/dev/null", 2)).Run().value() == 78);
}

TEST_CASE("supervisor: a worker that kills itself is started again and its output is kept", "[supervisor]") {
  const std::string log = Scratch("log");
  const std::string fifo = Scratch("fifo");
  REQUIRE(std::system(absl::StrCat("mkfifo ", fifo).c_str()) == 0);
  // The chief ends once two lives of the worker have written to the pipe.
  SupervisorOptions options = Shell(absl::StrCat("exec 3<>", fifo, "; read a <&3; read b <&3; exit 0"),
                                    absl::StrCat("echo life; echo life >", fifo, "; kill -9 $$"), 1);
  options.log_path = [&](const Role& role) { return role.chief ? std::string() : log; };

  CHECK(Supervisor(options).Run().value() == 0);

  CHECK(ReadAll(log).starts_with("life\nlife\n"));
}

TEST_CASE("supervisor: the reason that a failing process hands over is kept", "[supervisor]") {
  Supervisor chief(Shell("echo the disk is full >&3; exit 78", "exec cat /dev/zero >/dev/null", 1));
  CHECK(chief.Run().value() == 78);
  CHECK(chief.Cause() == "the disk is full");

  Supervisor worker(Shell("exec cat /dev/zero >/dev/null", "echo no GPU >&3; exit 78", 1));
  CHECK(worker.Run().value() == 78);
  CHECK(worker.Cause() == "worker-0: no GPU");

  Supervisor silent(Shell("exit 78", "exit 0", 1));
  CHECK(silent.Run().value() == 78);
  CHECK(silent.Cause().empty());
}

TEST_CASE("supervisor: the reason of a restart is said, and forgotten when a later life gives none", "[supervisor]") {
  const std::string second = Scratch("second");
  SupervisorOptions options =
      Shell(absl::StrCat("test -e ", second, " && exit 78; touch ", second, "; echo the disk is full >&3; exit 74"),
            "exec cat /dev/zero >/dev/null", 1);
  std::vector<std::string> said;
  options.say = [&](const std::string& line) { said.push_back(line); };

  Supervisor supervisor(options);
  CHECK(supervisor.Run().value() == 78);

  CHECK(supervisor.Cause().empty());
  REQUIRE_FALSE(said.empty());
  CHECK(said[0] == "the chief ended with code 74: the disk is full; starting it again");
}

TEST_CASE("supervisor: a log that is a link is refused before anything starts", "[supervisor]") {
  const std::string link = Scratch("link");
  REQUIRE(symlink("/nowhere", link.c_str()) == 0);
  SupervisorOptions options = Shell("exit 0", "exit 0", 2);
  options.log_path = [&](const Role& role) { return role == Role{.chief = false, .index = 1} ? link : std::string(); };
  int started = 0;
  options.command = [&](const Role&) {
    ++started;
    return std::vector<std::string>{"/bin/true"};
  };

  const absl::StatusOr<int> code = Supervisor(options).Run();

  CHECK(code.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(code.status().message()), Catch::Contains(link + " is a symbolic link"));
  CHECK(started == 0);
}

TEST_CASE("supervisor: a log that becomes a link keeps a worker waiting and ends nothing", "[supervisor]") {
  const std::string log = Scratch("turned");
  const std::string fifo = Scratch("lives");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  // The chief ends once two lives of the worker have written to the pipe.
  SupervisorOptions options = Shell(absl::StrCat("exec 3<>", fifo, "; read a <&3; read b <&3; exit 0"),
                                    absl::StrCat("echo life >", fifo, "; ln -sf /nowhere ", log, "; kill -9 $$"), 1);
  options.log_path = [&](const Role& role) { return role.chief ? std::string() : log; };
  std::vector<std::string> refused;
  options.say = [&](const std::string& line) {
    if (line.find("symbolic link") == std::string::npos) return;
    refused.push_back(line);
    unlink(log.c_str());
  };

  CHECK(Supervisor(options).Run().value() == 0);

  REQUIRE_FALSE(refused.empty());
  CHECK_THAT(refused[0], Catch::Contains("cannot start the worker-0: " + log) && Catch::Contains("trying again"));
}

// Stands where a chief will be: its first life stops itself, its second one ends well. Run by the test behind it alone.
TEST_CASE("a child that stops itself once", "[.child]") {
  const std::string mark = std::getenv("LOCKSTEP_TEST_MARK");
  if (access(mark.c_str(), F_OK) == 0) _exit(0);
  std::ofstream(mark) << "lived";
  StartLiveness("chief", mark + ".logs");
  NameThread("chief loop");
  const NowDoing standing("standing still");
  raise(SIGSTOP);
  for (;;) pause();
}

TEST_CASE("supervisor: a child that is stopped is looked at, killed and started again", "[supervisor]") {
  setenv("LOCKSTEP_TEST_MARK", Scratch("mark").c_str(), 1);
  char self[4096] = {};
  REQUIRE(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  SupervisorOptions options = Shell("", "exec cat /dev/zero >/dev/null", 1);
  options.command = [&, shell = options.command](const Role& role) {
    return role.chief ? std::vector<std::string>{self, "[.child]"} : shell(role);
  };
  std::vector<std::string> said;
  options.say = [&](const std::string& line) { said.push_back(line); };

  CHECK(Supervisor(options).Run().value() == 0);

  REQUIRE(said.size() >= 3);
  CHECK_THAT(said[0], Catch::StartsWith("the chief is at: chief loop: standing still for "));
  CHECK_THAT(said[1], Catch::StartsWith("killed chief: it is stopped and has not run for "));
  CHECK(said[2] == "the chief was ended by signal 9; starting it again");
}

TEST_CASE("supervisor: children do not outlive it, even after SIGKILL", "[supervisor]") {
  int alive[2];
  REQUIRE(pipe(alive) == 0);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    close(alive[0]);
    // Each child says that it lives, then holds the pipe open until it dies.
    const std::string script = absl::StrCat("echo x >&", alive[1], "; exec cat /dev/zero >/dev/null");
    (void)Supervisor(Shell(script, script, 2)).Run();
    _exit(0);
  }
  close(alive[1]);
  char seen[6];
  for (size_t have = 0; have < sizeof(seen);) {
    const ssize_t n = read(alive[0], seen + have, sizeof(seen) - have);
    REQUIRE(n > 0);
    have += static_cast<size_t>(n);
  }

  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);

  char rest = 0;
  CHECK(read(alive[0], &rest, 1) == 0);  // end of file: nobody holds the other end any more
  close(alive[0]);
}

TEST_CASE("supervisor: SIGTERM is passed to the chief and ends the run with its code", "[supervisor]") {
  int ready[2];
  REQUIRE(pipe(ready) == 0);
  const pid_t supervisor = fork();
  if (supervisor == 0) {
    // A shell that waits for anything here may miss a signal that comes just before it waits.
    const std::string chief = absl::StrCat("trap 'exit 75' TERM; echo x >&", ready[1], "; while :; do :; done");
    auto code = Supervisor(Shell(chief, "exit 0", 1)).Run();
    _exit(code.value_or(1));
  }
  char seen = 0;
  REQUIRE(read(ready[0], &seen, 1) == 1);

  kill(supervisor, SIGTERM);
  int status = 0;
  waitpid(supervisor, &status, 0);

  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 75);
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace lockstep::supervisor
