// Workers that are sent away: by a file, by the metadata server of a cloud, by `lockstep drain`. The job loses no step
// and ends with the bits of an undisturbed run.
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/exit_code.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"
#include "worker/notice/fake_metadata_server.h"

namespace lockstep::e2e {
namespace {

using Catch::Contains;
using worker::FakeMetadataServer;

constexpr Ended kLeft{kExitPreempted, 0};

// Nothing is saved on the way: what a checkpoint holds before the end, a leaver has saved.
std::vector<std::string> Steps(const std::string& duration) {
  return {absl::StrCat("train.duration=", duration), "checkpoint.every=1000000steps"};
}

Result Drain(const LocalJob& job, const Words& words) {
  Words all = {"drain", "--dir", job.directory()};
  all.insert(all.end(), words.begin(), words.end());
  return Run(all);
}

TEST_CASE("drain: one worker goes by a file, the other by a drain, and the job ends with the same bits", "[e2e]") {
  LocalJob quiet("drain_quiet", kJob, Steps("1500steps"));
  quiet.RunUndisturbed(1);
  LocalJob job("drain", kJob, Steps("1500steps"));
  const std::string file = TempPath("going");
  job.StartChief(2);
  job.StartWorker(0);
  job.StartWorker(1, {"--notice-file", file});
  job.WaitForStep(20);

  Write(file, "60s");
  CHECK(job.WaitForEnd("worker-1") == kLeft);

  const Result unknown = Drain(job, {"worker-7"});
  CHECK(unknown.code == kExitUsage);
  CHECK_THAT(unknown.output, Contains("'worker-7'") && Contains("worker-0 on ") && Contains("worker-1 on "));

  // Nobody stays: what was trained is saved first.
  const Result drained = Drain(job, {"worker-0", "--by", "10m", "--wait"});
  CHECK(drained.code == kExitDone);
  CHECK_THAT(drained.output, Contains("worker-0") && Contains("nobody stays") && Contains("they are gone"));
  CHECK(job.WaitForEnd("worker-0") == kLeft);
  const auto status = job.Status();
  REQUIRE(status.has_value());
  CHECK(status->published_step() == status->step());
  CHECK(status->published_step() >= 20);
  REQUIRE(status->drained_size() == 1);
  CHECK(status->drained(0) == "worker-0");

  // Its successor is turned away, also by the next chief.
  job.StartWorker(0);
  CHECK(job.WaitForEnd("worker-0") == kLeft);
  CHECK_THAT(job.LogOf("worker-0"), Contains("lockstep drain --undo worker-0"));
  job.Kill("chief");
  job.StartChief(1);
  job.StartWorker(0);
  CHECK(job.WaitForEnd("worker-0") == kLeft);
  CHECK(Drain(job, {"--undo", "worker-0"}).code == kExitDone);
  job.StartWorker(0);
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("chief") == Ended{});

  CHECK(job.Digest() == quiet.Digest());
  CHECK(job.Stats().job().losses() == 0);
  CHECK(job.ReplayRecords() >= 5);
  std::filesystem::remove(file);
}

TEST_CASE("drain: a cloud's notice sends a worker away, and one whose server hangs trains on", "[e2e]") {
  std::atomic<bool> preempted = false;
  FakeMetadataServer gcp([&](const std::string&) {
    return FakeMetadataServer::Reply(200, preempted ? "TRUE" : "FALSE", "Metadata-Flavor: Google\r\n");
  });
  FakeMetadataServer hangs([](const std::string&) { return FakeMetadataServer::kHang; });
  LocalJob job("drain_cloud", kJob, Steps("1000000steps"));
  job.StartChief(2);
  job.StartWorker(0, {"--notice", "aws", "--notice-endpoint", hangs.endpoint().ToString()});
  job.StartWorker(1, {"--notice", "gcp", "--notice-endpoint", gcp.endpoint().ToString()});
  job.WaitForStep(20);

  preempted = true;
  CHECK(job.WaitForEnd("worker-1") == kLeft);
  const uint64_t then = job.Status()->step();
  job.WaitForStep(then + 20);
  WaitUntil("the server that hangs is named",
            [&] { return job.LogOf("worker-0").find("did not answer within") != std::string::npos; });

  CHECK(Run({"stop", "--dir", job.directory()}).code == kExitDone);
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.Stats().job().losses() == 0);
}

TEST_CASE("drain: `lockstep run` does not start a drained worker again before the drain is lifted", "[e2e]") {
  LocalJob job("drain_run", kJob, {});
  Watched run("drain_run", {"run", kJob, "--workers", "2", "--dir", job.directory()}, Steps("1000000steps"));
  job.WaitForStep(20);

  CHECK(Drain(job, {"worker-1"}).code == kExitDone);
  run.WaitFor("worker-1 is drained: it is started again when");
  const uint64_t then = job.Status()->step();
  job.WaitForStep(then + 20);
  CHECK(job.Status()->workers_size() == 1);
  CHECK_THAT(Run({"status", "--dir", job.directory()}).output, Contains("drained: worker-1"));

  CHECK(Drain(job, {"--undo", "worker-1"}).code == kExitDone);
  job.WaitForStatus("both step", [](const proto::StatusReply& status) {
    return status.workers_size() == 2 && status.workers(0).rank() >= 0 && status.workers(1).rank() >= 0;
  });
  CHECK(Run({"stop", "--dir", job.directory()}).code == kExitDone);
  CHECK(run.End() == Ended{});
}

TEST_CASE("drain: a file sends all workers of `lockstep run` away, saved, until it is removed", "[e2e]") {
  LocalJob job("drain_file", kJob, {});
  const std::string file = TempPath("machine_goes");
  CHECK(Run({"run", kJob, "--dir", job.directory(), "--notice", "nimbus"}).code == kExitUsage);
  Watched run("drain_file", {"run", kJob, "--workers", "2", "--dir", job.directory(), "--notice-file", file},
              Steps("1000000steps"));
  job.WaitForStep(20);

  Write(file, "60s");
  run.WaitFor(absl::StrCat("worker-0 was sent away: it is started again when ", file, " is removed"));
  run.WaitFor("worker-1 was sent away");
  job.WaitForStatus("nobody is there", [](const proto::StatusReply& status) { return status.workers_size() == 0; });
  const auto status = job.Status();
  REQUIRE(status.has_value());
  CHECK(status->published_step() == status->step());
  CHECK(status->step() >= 20);

  std::filesystem::remove(file);
  job.WaitForStep(status->step() + 20);
  CHECK(Run({"stop", "--dir", job.directory()}).code == kExitDone);
  CHECK(run.End() == Ended{});
}

}  // namespace
}  // namespace lockstep::e2e
