// A second chief that stands by, on real processes: the job goes on under it with the same weights.
#include <signal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/standby_job.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

// A chief, two workers that look for it in the job's directory, and a chief that stands by.
struct WithStandby {
  explicit WithStandby(const std::string& name)
      : directory(TempPath(name)),
        first(name + ".first", {"chief", kJob, "--dir", directory, "--expected-workers", "2"}, sets) {
    first.WaitFor("listening on");
    standby.emplace(name + ".standby", Words{"chief", kJob, "--dir", directory, "--standby"}, sets);
    standby->WaitFor("the chief of term 1 has the job");
    StartWorkers();
  }

  void StartWorkers() {
    workers.clear();
    for (int i = 0; i < 2; ++i) {
      const std::string worker = absl::StrCat("worker-", i);
      workers.push_back(std::make_unique<Watched>(absl::StrCat("standby.", worker),
                                                  Words{"worker", "--job", directory, "--name", worker}));
    }
  }

  void CheckDone() { StandbyJob::CheckDone(directory, *standby, workers); }

  static inline const Words sets = StandbyJob::sets;
  const std::string directory;
  Watched first;
  std::optional<Watched> standby;
  std::vector<std::unique_ptr<Watched>> workers;
};

TEST_CASE("standby: a chief that is killed is followed at once, and the weights are the same", "[e2e]") {
  WithStandby job("killed");
  job.first.WaitFor("saved step");

  job.first.process().Signal(SIGKILL);

  job.standby->WaitFor("taking the job over: the chief with pid");
  job.CheckDone();
  CHECK_THAT(job.standby->Output(), Contains("term 2, listening on") && Contains("done at step 2000"));
}

TEST_CASE("standby: a chief that stands still is replaced, and does no harm when it wakes up", "[e2e]") {
  WithStandby job("paused");
  job.first.WaitFor("saved step");
  job.first.process().Signal(SIGSTOP);
  job.standby->WaitFor("has been silent for 15s");
  job.standby->WaitFor("saved step");

  job.first.process().Signal(SIGCONT);

  CHECK(job.first.End() == Ended{kExitFenced, 0});
  job.CheckDone();
}

TEST_CASE(
    "standby: a chief that is told to go is followed at once by the same workers, and a job that is done ends the "
    "standby",
    "[e2e]") {
  WithStandby job("told");
  Watched third("told.third", {"chief", kJob, "--dir", job.directory, "--standby"}, WithStandby::sets);
  third.WaitFor("standing by");
  job.first.WaitFor("saved step");

  job.first.process().Signal(SIGTERM);

  CHECK(job.first.End() == Ended{kExitPreempted, 0});
  // Either of the two may be faster; the other one follows it to the end.
  CHECK(third.End() == Ended{});
  job.CheckDone();
  const bool second_was = job.standby->Output().find("listening on") != std::string::npos;
  const bool third_was = third.Output().find("listening on") != std::string::npos;
  CHECK(second_was != third_was);
}

}  // namespace
}  // namespace lockstep::e2e
