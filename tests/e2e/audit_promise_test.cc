// A bit flips in the memory of one worker while it trains: the job finds it, goes back, and ends with the bits of a run
// in which that never happened. Digests are compared between runs of this machine, never with a constant.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

constexpr int kRestart = 75;

std::vector<std::string> AuditSettings() {
  return {"train.duration=200steps", "checkpoint.every=20steps", "train.ema.decay=0.99"};
}

const std::string& DigestWithoutFlips() {
  static const std::string digest = [] {
    LocalJob job("undisturbed", kJob, AuditSettings());
    job.RunUndisturbed(1);
    return job.Digest();
  }();
  return digest;
}

// A worker whose memory is hit after this step, once in its life.
void StartFlippingWorker(LocalJob& job, int index, int after_step) {
  setenv("LOCKSTEP_TEST_FLIP_AFTER_STEP", absl::StrCat(after_step).c_str(), 1);
  job.StartWorker(index);
  unsetenv("LOCKSTEP_TEST_FLIP_AFTER_STEP");
}

TEST_CASE("promise: of three workers the one whose memory is hit is named, and the last bits are right", "[e2e]") {
  LocalJob job("three", kJob, AuditSettings());
  job.StartChief(3);
  job.StartWorker(0);
  StartFlippingWorker(job, 1, 50);
  job.StartWorker(2);

  CHECK(job.WaitForEnd("worker-1") == Ended{kRestart, 0});
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1", "worker-2"}) CHECK(job.WaitForEnd(worker) == Ended{});

  CHECK_THAT(job.LogOf("chief"), Catch::Contains("worker-1 on ") && Catch::Contains("differs from the majority") &&
                                     Catch::Contains("went back to step "));
  CHECK(job.Stats().job().digest_mismatches() == 1);
  CHECK(job.Stats().job().losses() == 0);
  CHECK(job.Digest() == DigestWithoutFlips());
  job.ReplayRecords();
}

TEST_CASE("promise: a snapshot that changed in memory costs no save: it is named, and another worker sends the rest",
          "[e2e]") {
  LocalJob job("snapshot", kJob, AuditSettings());
  job.Override("checkpoint.when_busy=wait");  // the save of step 40 is not left out where the one before takes long
  job.StartChief(2);
  job.StartWorker(0);
  setenv("LOCKSTEP_TEST_FLIP_SNAPSHOT_OF_STEP", "40", 1);
  job.StartWorker(1);
  unsetenv("LOCKSTEP_TEST_FLIP_SNAPSHOT_OF_STEP");
  for (const char* process : {"chief", "worker-0", "worker-1"}) CHECK(job.WaitForEnd(process) == Ended{});

  const std::string log = job.LogOf("chief");
  CHECK_THAT(job.LogOf("worker-1"), Catch::Contains("bits of the snapshot of step 40 are flipped"));
  CHECK_THAT(log, Catch::Contains("from worker-1 on ") && Catch::Contains("are not those that were announced"));
  CHECK_THAT(log, !Catch::Contains("abandoned"));
  CHECK(job.Stats().job().losses() == 0);
  CHECK(job.Digest() == DigestWithoutFlips());
}

TEST_CASE("promise: of two workers nobody is named, both go back, and the last bits are right", "[e2e]") {
  LocalJob job("two", kJob, AuditSettings());
  job.StartChief(2);
  job.StartWorker(0);
  StartFlippingWorker(job, 1, 50);

  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1"}) CHECK(job.WaitForEnd(worker) == Ended{});

  CHECK_THAT(job.LogOf("chief"), Catch::Contains("nobody can be named") && Catch::Contains("went back to step "));
  CHECK(job.Stats().job().digest_mismatches() == 1);
  CHECK(job.Digest() == DigestWithoutFlips());
  job.ReplayRecords();
}

TEST_CASE("promise: a chief that dies right after the way back does not return to what was given up", "[e2e]") {
  LocalJob job("chief", kJob, AuditSettings());
  job.StartChief(2);
  job.StartWorker(0);
  StartFlippingWorker(job, 1, 50);
  job.WaitForStatus("the new lineage",
                    [](const proto::StatusReply& s) { return absl::StrContains(s.lineage(), "~1"); });

  job.Kill("chief");
  job.StartChief(2);
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1"}) CHECK(job.WaitForEnd(worker) == Ended{});

  CHECK(job.Digest() == DigestWithoutFlips());
  job.ReplayRecords();
}

TEST_CASE("promise: where no checkpoint was made for long, all go back to a state that workers keep in memory",
          "[e2e]") {
  // So late that all have told of step 16, which they do every 0.2 s, on a machine of any speed.
  const std::vector<std::string> settings = {"train.duration=600steps", "checkpoint.every=5000steps",
                                             "train.ema.decay=0.99"};
  LocalJob alone("kept_alone", kJob, settings);
  alone.RunUndisturbed(1);
  LocalJob job("kept", kJob, settings);
  job.StartChief(3);
  job.StartWorker(0);
  StartFlippingWorker(job, 1, 410);
  job.StartWorker(2);

  CHECK(job.WaitForEnd("worker-1") == Ended{kRestart, 0});
  job.StartWorker(1);
  CHECK(job.WaitForEnd("chief") == Ended{});
  for (const char* worker : {"worker-0", "worker-1", "worker-2"}) CHECK(job.WaitForEnd(worker) == Ended{});

  // The first audit, at step 16, and 5 s later the next one that is kept.
  CHECK_THAT(job.LogOf("chief"), Catch::Contains(", kept in memory: ") && !Catch::Contains("went back to step 0"));
  REQUIRE(job.Stats().repairs_size() == 1);
  CHECK(job.Stats().repairs(0).from_copy());
  CHECK(job.Stats().repairs(0).back_to() >= 16);
  CHECK(job.Stats().repairs(0).found_at() == 416);
  CHECK(job.Stats().repairs(0).workers(0) == "worker-1");
  CHECK(job.Digest() == alone.Digest());
  job.ReplayRecords();
}

}  // namespace
}  // namespace lockstep::e2e
