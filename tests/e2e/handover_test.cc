// A chief that is told to go (SIGTERM) while workers step, on real processes: they stay, and the next one goes on with
// the generation that it finds.
#include <signal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;

constexpr Ended kToldToGo{kExitPreempted, 0};

Words SetsStandby(const std::string& duration, const std::string& every) {
  return {"train.duration=" + duration, "checkpoint.every=" + every};
}

void StartTwo(LocalJob& job) {
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(60);
}

const std::string& UndisturbedByHandover() {
  static const std::string digest = [] {
    LocalJob job("undisturbed", kJob, SetsStandby("1500steps", "1000steps"));
    job.RunUndisturbed(1);
    return job.Digest();
  }();
  return digest;
}

TEST_CASE("handover: the next chief goes on with the generation of the one that was told to go", "[e2e]") {
  LocalJob job("followed", kJob, SetsStandby("1500steps", "1000steps"));
  StartTwo(job);

  job.chief().Signal(SIGTERM);
  CHECK(job.WaitForEnd("chief") == kToldToGo);
  const std::string said = job.LogOf("chief");
  CHECK_THAT(said, Contains("SIGTERM: saving first; then this chief goes"));
  CHECK_THAT(said, Contains("is published; the workers wait for the next chief"));
  CHECK(job.worker(0).Running());
  CHECK(job.worker(1).Running());
  job.StartChief(2);

  for (const char* process : {"chief", "worker-0", "worker-1"}) CHECK(job.WaitForEnd(process) == Ended{});
  const JobStats stats = job.Stats().job();
  CHECK(stats.losses() == 0);
  CHECK(stats.preemptions() == 0);
  CHECK(stats.generations() == 1);
  const std::string log = job.LogOf("chief");
  CHECK_THAT(log, Contains("generation 1.1 goes on under term 2") && !Contains(" ends after step"));
  CHECK_THAT(job.LogOf("worker-0"), Contains("it was told to go; the next one is waited for"));
  CHECK(job.Digest() == UndisturbedByHandover());
  CHECK(job.ReplayRecords() == 4);
}

TEST_CASE("handover: a chief with other settings takes the workers over, and the weights are the same", "[e2e]") {
  LocalJob job("changed", kJob, SetsStandby("1500steps", "1000steps"));
  StartTwo(job);

  job.chief().Signal(SIGTERM);
  CHECK(job.WaitForEnd("chief") == kToldToGo);
  job.Override("checkpoint.every=300steps");
  job.StartChief(2);

  for (const char* process : {"chief", "worker-0", "worker-1"}) CHECK(job.WaitForEnd(process) == Ended{});
  CHECK_THAT(job.LogOf("chief"),
             Contains("since the last save the job changed checkpoint.every") && Contains("from the state of worker-"));
  CHECK(job.Stats().job().losses() == 0);
  CHECK(job.Digest() == UndisturbedByHandover());
}

TEST_CASE("handover: where no chief follows, the workers give up after chief_timeout, and nothing saved is lost",
          "[e2e]") {
  Words sets = SetsStandby("100000steps", "100000steps");
  sets.push_back("cluster.chief_timeout=1s");
  LocalJob job("left", kJob, sets);
  StartTwo(job);

  job.chief().Signal(SIGTERM);
  CHECK(job.WaitForEnd("chief") == kToldToGo);

  CHECK(job.WaitForEnd("worker-0") == Ended{kExitChiefUnreachable, 0});
  CHECK(job.WaitForEnd("worker-1") == Ended{kExitChiefUnreachable, 0});
  CHECK_THAT(job.LogOf("worker-0") + job.LogOf("worker-1"), Contains("after the last one was told to go"));
  job.StartChief(1);
  job.StartWorker(2);
  job.WaitForStatus("what was saved", [](const proto::StatusReply& s) { return s.published_step() >= 60; });
}

TEST_CASE("handover: Ctrl-C, and SIGTERM where the starter asked for it, end the whole job", "[e2e]") {
  for (const int number : {SIGINT, SIGTERM}) {
    CAPTURE(number);
    const std::string directory = TempPath(absl::StrCat("whole-", number));
    Words words{"chief", kJob, "--dir", directory, "--expected-workers", "1"};
    if (number == SIGTERM) words.push_back("--stop-on-sigterm");
    Watched chief(absl::StrCat("whole-", number, ".chief"), words, Settings("100000steps"));
    Watched worker(absl::StrCat("whole-", number, ".worker"), {"worker", "--job", directory});
    chief.WaitFor("saved step");

    chief.process().Signal(number);

    CHECK(chief.End() == kToldToGo);
    CHECK(worker.End() == kToldToGo);
    CHECK_THAT(chief.Output(), Contains("stop requested by SIG"));
  }
}

}  // namespace
}  // namespace lockstep::e2e
