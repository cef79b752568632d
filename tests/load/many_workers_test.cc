// Many real workers on one machine under `lockstep run`, some of them killed: the job ends with the bits of one worker.
//
// LOCKSTEP_MANY_WORKERS sets how many there are (10), LOCKSTEP_MANY_STEPS how long the job is.
#include <signal.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/clock/clock.h"
#include "deploy/cli/admin_client.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"

namespace lockstep::load {
namespace {

using e2e::Process;
using e2e::Words;

constexpr absl::Duration kLimit = absl::Minutes(15);
constexpr absl::Duration kLookEvery = absl::Milliseconds(20);

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  int value = 0;
  return text != nullptr && absl::SimpleAtoi(text, &value) && value > 1 ? value : otherwise;
}

// One sample per logical shard, one shard per worker.
Words Run(const std::string& directory, int workers, int most, int steps) {
  Words words = {e2e::kLockstep, "run", e2e::kJob, "--workers", absl::StrCat(workers), "--dir", directory};
  for (const std::string& setting :
       {std::string(e2e::kInputs), std::string(e2e::kLabels), absl::StrCat("train.logical_shards=", most),
        absl::StrCat("train.global_batch_size=", most), absl::StrCat("cluster.workers=1:", most),
        absl::StrCat("train.duration=", steps, "steps"), std::string("checkpoint.every=100steps"),
        std::string("cluster.heartbeat_timeout=60s")}) {
    words.insert(words.end(), {"--set", setting});
  }
  return words;
}

// The processes of the workers that `run` started and that live.
std::vector<pid_t> WorkersOf(pid_t run) {
  std::vector<pid_t> workers;
  std::ifstream children(absl::StrCat("/proc/", run, "/task/", run, "/children"));
  for (pid_t child = 0; children >> child;) {
    std::ifstream command(absl::StrCat("/proc/", child, "/cmdline"), std::ios::binary);
    std::string program, role;  // empty where the child went away meanwhile
    std::getline(command, program, '\0');
    std::getline(command, role, '\0');
    if (role == "worker") workers.push_back(child);
  }
  return workers;
}

// Blocks until so many members have agreed on a step past `step`, in whatever generation; that step.
uint64_t AwaitMembers(Process& run, const std::string& directory, size_t members, uint64_t step) {
  const absl::Time until = SteadyNow() + kLimit;
  for (;;) {
    const auto client = cli::AdminClient::ForDirectory(directory);
    const auto status = client.ok() ? (*client)->Status(absl::Seconds(5)) : client.status();
    if (status.ok() && status->phase() == "RUNNING" && status->step() > step) {
      size_t stepping = 0;
      for (const auto& worker : status->workers()) stepping += worker.rank() >= 0 ? 1 : 0;
      if (stepping >= members) return status->step();
    }
    if (!run.Running()) FAIL("the job ended before " << members << " workers stepped past " << step);
    if (SteadyNow() >= until) FAIL("waited in vain for " << members << " workers past step " << step);
    run.Wait(kLookEvery);
  }
}

TEST_CASE("many workers: some are killed, and the job ends with the bits of one", "[load]") {
  const int workers = FromEnvironment("LOCKSTEP_MANY_WORKERS", 10);
  const int steps = FromEnvironment("LOCKSTEP_MANY_STEPS", 300);
  const std::string alone = e2e::TempPath("alone");
  Process one(Run(alone, 1, workers, steps), alone + ".log");
  REQUIRE(one.Wait(kLimit) == e2e::Ended{});

  const absl::Time begin = SteadyNow();
  const std::string directory = e2e::TempPath("many");
  Process run(Run(directory, workers, workers, steps), directory + ".log");
  uint64_t step = AwaitMembers(run, directory, static_cast<size_t>(workers), 0);
  std::cout << workers << " workers step after " << SteadyNow() - begin << "\n";
  constexpr int kKills = 3;
  for (int kill_number = 0; kill_number < kKills; ++kill_number) {
    const std::vector<pid_t> living = WorkersOf(run.pid());
    REQUIRE(living.size() > kKills);
    kill(living[static_cast<size_t>(kill_number) * living.size() / kKills], SIGKILL);
    step = AwaitMembers(run, directory, static_cast<size_t>(workers) / 2, step + 5);
  }
  const auto ended = run.Wait(kLimit);
  std::cout << "the job of " << steps << " steps took " << SteadyNow() - begin << "\n";

  INFO(e2e::Read(directory + ".log"));
  CHECK(ended == e2e::Ended{});
  CHECK(e2e::Digest(directory) == e2e::Digest(alone));
}

}  // namespace
}  // namespace lockstep::load
