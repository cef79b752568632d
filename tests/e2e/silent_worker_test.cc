// Workers that stop and say nothing, on real processes: the chief notices each within the limit of the job file,
// whatever else it hears meanwhile.
#include <signal.h>

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/e2e/commands.h"

namespace lockstep::e2e {
namespace {

constexpr int kWorkers = 4;
// Heartbeats are missed for 5 s, and half a second lies between two looks: a machine may take as long again and more.
constexpr absl::Duration kNoticed = absl::Seconds(20);

int CountInLog(const std::string& text, const std::string& part) {
  int count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

int WorkersThatAre(const proto::StatusReply& status, const std::string& state) {
  int count = 0;
  for (const auto& worker : status.workers()) count += worker.state() == state ? 1 : 0;
  return count;
}

// Members have ranks: one may be a straggler for a while.
int MembersOf(const proto::StatusReply& status) {
  int count = 0;
  for (const auto& worker : status.workers()) count += worker.rank() >= 0 ? 1 : 0;
  return count;
}

// Blocks until three workers step and one is spare; its number.
int WaitForSpare(LocalJob& job) {
  int spare = -1;
  job.WaitForStatus("three members and a spare", [&](const proto::StatusReply& status) {
    for (const auto& worker : status.workers()) {
      if (worker.state() == "spare") spare = worker.name().back() - '0';
    }
    return status.phase() == "RUNNING" && MembersOf(status) == 3 && WorkersThatAre(status, "spare") == 1;
  });
  return spare;
}

// Stops `index` and waits for the chief's word of it.
void StopAndWaitForNotice(LocalJob& job, int index) {
  const std::string notice = absl::StrCat("worker-", index, ": silent for ");
  const int before = CountInLog(job.LogOf("chief"), notice);
  const absl::Time until = absl::Now() + kNoticed;
  job.worker(index).Signal(SIGSTOP);
  job.WaitForStatus(notice, [&](const proto::StatusReply&) {
    const std::string log = job.LogOf("chief");
    if (CountInLog(log, notice) > before) return true;
    if (absl::Now() >= until) FAIL("the chief did not notice that worker-" << index << " is silent:\n" << log);
    return false;
  });
}

TEST_CASE("silent worker: a member and a spare that stop are both noticed within the limit", "[e2e]") {
  LocalJob job("silent", kJob,
               {"train.duration=1000000steps", "checkpoint.every=1000000steps", "train.global_batch_size=63",
                "train.logical_shards=3", "cluster.heartbeat_timeout=5s"});
  job.StartChief(kWorkers);
  for (int i = 0; i < kWorkers; ++i) job.StartWorker(i);
  const int spare = WaitForSpare(job);
  const int member = (spare + 1) % kWorkers;

  StopAndWaitForNotice(job, member);
  job.worker(member).Signal(SIGCONT);
  StopAndWaitForNotice(job, WaitForSpare(job));

  job.WaitForStatus("three members go on", [](const proto::StatusReply& status) {
    return status.phase() == "RUNNING" && MembersOf(status) == 3;
  });
}

TEST_CASE("late worker: one that comes when the job is done hears so from the directory, and ends well", "[e2e]") {
  const std::string directory = FinishedJob();

  const Result worker = Run({"worker", "--chief-file", directory + "/chief/address", "--token-file",
                             directory + "/chief/token", "--connect-timeout", "1"});

  INFO(worker.output);
  CHECK(worker.code == kExitDone);
  CHECK_THAT(worker.output, Catch::Contains("the job is done: step 20 is published"));
}

}  // namespace
}  // namespace lockstep::e2e
