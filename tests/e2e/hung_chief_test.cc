// A chief that lives and does nothing, on real processes: one whose loop hangs is replaced, one that was stopped for a
// while goes on with the generation that stepped on without it.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "common/liveness/proc.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

// A file that takes what is written for as long as somebody reads it, and then lets its writer wait for ever.
class ClogFile {
 public:
  explicit ClogFile(const std::string& path) {
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    fd_ = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    REQUIRE(fd_ >= 0);
    reader_ = std::thread([this] {
      char buffer[1 << 16];
      while (!clogged_) {
        pollfd written = {.fd = fd_, .events = POLLIN, .revents = 0};
        if (poll(&written, 1, /*milliseconds=*/20) > 0 && read(fd_, buffer, sizeof buffer) <= 0) return;
      }
    });
  }
  ~ClogFile() {
    Clog();
    close(fd_);
  }
  void Clog() {
    clogged_ = true;
    if (reader_.joinable()) reader_.join();
  }

 private:
  int fd_ = -1;
  std::atomic<bool> clogged_{false};
  std::thread reader_;
};

TEST_CASE("hung chief: one whose loop hangs ends itself and is replaced, and the weights are the same", "[e2e]") {
  const Words sets = Settings("3000steps", "1000steps");
  const std::string records = TempPath("records");
  std::filesystem::create_directories(records);
  // The loop writes its record itself: a diagnosis may hold it up, and does so here.
  ClogFile record(records + "/chief-1.record");
  const std::string directory = TempPath("hung");
  Watched run("hung", {"run", kJob, "--workers", "2", "--dir", directory, "--record", records}, sets);
  run.WaitFor(" steps from ");

  record.Clog();
  run.WaitFor("the chief's loop has stood for");

  CHECK(run.End() == Ended{});
  const std::string output = run.Output();
  CAPTURE(output);
  CHECK_THAT(output, Contains("the chief was ended by signal 6") && Contains("term 2, listening"));
  // It says what it stood at, and where: the file that it did not get rid of.
  CHECK_THAT(output, Contains("chief loop: the event ") && Contains("its stacks are in "));
  const size_t at = output.find("its stacks are in ") + std::string("its stacks are in ").size();
  CHECK_THAT(Read(output.substr(at, output.find('\n', at) - at)),
             Contains("lockstep::chief::ChiefLoop::Step()") && Contains("write"));
  const std::string undisturbed = TempPath("not_hung");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", undisturbed}, sets).code == kExitDone);
  CHECK(Digest(directory) == Digest(undisturbed));
}

// The process that this run's `role` is; 0 while there is none.
int ProcessOf(const std::string& directory, const std::string& role) {
  for (const int pid : liveness::FindProcesses()) {
    const auto view = liveness::PageView::Of(pid);
    if (!view.ok() || (*view)->page().role.Get() != role) continue;
    std::error_code error;
    if (std::filesystem::equivalent((*view)->page().folder.Get(), directory + "/logs", error)) return pid;
  }
  return 0;
}

TEST_CASE("hung chief: one that is stopped is replaced by its supervisor, and the weights are the same", "[e2e]") {
  const Words sets = Settings("3000steps", "1000steps");
  const std::string directory = TempPath("stopped");
  Watched run("stopped", {"run", kJob, "--workers", "2", "--dir", directory}, sets);
  run.WaitFor(" steps from ");
  const int chief = ProcessOf(directory, "chief");
  REQUIRE(chief != 0);

  kill(chief, SIGSTOP);
  run.WaitFor("term 2, listening");

  CHECK(run.End() == Ended{});
  const std::string output = run.Output();
  CAPTURE(output);
  const size_t examined = output.find("the chief is at: ");
  const size_t killed = output.find("killed chief: it is stopped and has not run for ");
  CHECK(examined < killed);
  CHECK(killed < output.find("term 2, listening"));
  const std::string undisturbed = TempPath("not_stopped");
  REQUIRE(Run({"run", kJob, "--workers", "1", "--dir", undisturbed}, sets).code == kExitDone);
  CHECK(Digest(directory) == Digest(undisturbed));
}

TEST_CASE("hung worker: one that is stopped is replaced by its supervisor, and can be looked at before", "[e2e]") {
  const std::string directory = TempPath("stopped_worker");
  Watched run("stopped_worker", {"run", kJob, "--workers", "2", "--dir", directory}, Settings("1000000steps", "1h"));
  run.WaitFor(" steps from ");
  const int worker = ProcessOf(directory, "worker-1");
  REQUIRE(worker != 0);

  const Result dump = Run({"dump", "--dir", directory});
  CHECK(dump.code == kExitDone);
  CHECK_THAT(dump.output, Contains("lockstep dump of chief, process ") && Contains("lockstep dump of worker-0, ") &&
                              Contains("engine (thread ") && Contains("lockstep::worker::SessionLoop::Run()"));
  kill(worker, SIGSTOP);
  const Result stopped = Run({"dump", absl::StrCat(worker)});
  CHECK(stopped.code == kExitDone);
  CHECK_THAT(stopped.output, Contains("from outside, for it is stopped") && Contains("engine: is stopped"));

  run.WaitFor("killed worker-1: it is stopped and has not run for ");
  run.WaitFor("worker-1 was ended by signal 9; starting it again");
  run.process().Signal(SIGTERM);
  CHECK(run.End().code == kExitPreempted);
}

TEST_CASE("hung chief: one that was stopped goes on with the generation that stepped on without it", "[e2e]") {
  LocalJob job("stopped_chief", kJob, {"train.duration=1000000steps", "checkpoint.every=1000000steps"});
  job.StartChief(2);
  for (const int i : {0, 1}) job.StartWorker(i);
  job.WaitForStep(20);

  job.chief().Signal(SIGSTOP);
  const auto gave_up = [&](int i) {
    return job.LogOf(absl::StrCat("worker-", i)).find("it has answered no heartbeat") != std::string::npos;
  };
  WaitUntil("both workers give up a chief that was stopped", [&] { return gave_up(0) && gave_up(1); });
  job.chief().Signal(SIGCONT);
  // Until it has taken them back in, its status is of before the stop, or of no generation.
  WaitUntil("the chief takes both back in",
            [&] { return absl::StrContains(job.LogOf("chief"), "goes on under term 1, 2 members"); });

  uint64_t step = 0;
  job.WaitForStatus("steps", [&](const proto::StatusReply& status) {
    if (step == 0) step = status.step();
    CHECK(status.generation().counter() == 1);
    return status.step() > step + 100;
  });
}

}  // namespace
}  // namespace lockstep::e2e
