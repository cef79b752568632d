#include "chief/stats/stats_tracker.h"

#include <catch2/catch.hpp>

namespace lockstep::chief {
namespace {

const absl::Time kStart = absl::FromUnixSeconds(1000);

StepTimings Steps(int64_t steps, double ms) {
  StepTimings timings;
  timings.steps = steps;
  timings.total = steps * absl::Milliseconds(ms);
  timings.compute = timings.total / 2;
  timings.all_reduce = timings.total / 4;
  timings.data = timings.total / 8;
  timings.samples = 32 * steps;
  timings.bytes_reduced = 1000 * steps;
  return timings;
}

TEST_CASE("stats: a worker's steps are totalled, with the quantiles that it measured and the recent rate", "[stats]") {
  StatsTracker tracker("job", "line", 3);
  tracker.Joined(kStart, "worker-0", "alpha", "cpu", "i1");

  tracker.Stepped(kStart + absl::Seconds(4), "worker-0", Steps(100, 50.5));
  tracker.SetStepQuantiles("worker-0", 51, 95);
  tracker.Uploaded("worker-0", absl::Milliseconds(250), 4096);

  const WorkerStatsFile file = tracker.Snapshot(kStart + absl::Seconds(5));
  REQUIRE(file.workers_size() == 1);
  const WorkerStats& stats = file.workers(0);
  CHECK(stats.worker() == "worker-0");
  CHECK(stats.host() == "alpha");
  CHECK(stats.connected());
  CHECK(stats.steps() == 100);
  CHECK(stats.samples() == 3200);
  CHECK(stats.samples_per_second() == Approx(640));
  CHECK(stats.step_ms_p50() == 51);
  CHECK(stats.step_ms_p95() == 95);
  CHECK(stats.compute_seconds() == Approx(2.525));
  CHECK(stats.all_reduce_seconds() == Approx(1.2625));
  CHECK(stats.data_seconds() == Approx(0.63125));
  CHECK(stats.checkpoint_seconds() == Approx(0.25));
  CHECK(stats.bytes_reduced() == 100000);
  CHECK(stats.bytes_uploaded() == 4096);
  CHECK(file.job().bytes_reduced() == 100000);
  CHECK(file.job().samples_per_second() == Approx(640));
  CHECK(tracker.Snapshot(kStart + absl::Seconds(20)).job().samples_per_second() == 0);
}

TEST_CASE("stats: departures are counted by kind, and a gone worker has no rate", "[stats]") {
  StatsTracker tracker("job", "line", 1);
  for (const char* name : {"b", "a"}) {
    tracker.Joined(kStart, name, "h", "cpu", "i");
    tracker.Stepped(kStart + absl::Seconds(1), name, Steps(1, 10));
  }

  tracker.Departed("a", Departure::kPreempted);
  tracker.Joined(kStart, "a", "h", "cpu", "i2");
  tracker.Departed("a", Departure::kLost);
  tracker.Joined(kStart, "a", "h", "cpu", "i3");
  tracker.Departed("a", Departure::kCrashed);
  tracker.DigestMismatch("a");

  const WorkerStatsFile file = tracker.Snapshot(kStart + absl::Seconds(2));
  const WorkerStats& a = file.workers(0);
  CHECK(a.worker() == "a");  // sorted
  CHECK(a.joins() == 3);
  CHECK(a.preemptions() == 1);
  CHECK(a.losses() == 1);
  CHECK(a.crashes() == 1);
  CHECK(a.digest_mismatches() == 1);
  CHECK_FALSE(a.connected());
  CHECK(a.samples_per_second() == 0);
  CHECK(file.workers(1).samples_per_second() == Approx(16));
  CHECK(file.job().joins() == 4);
  CHECK(file.job().preemptions() == 1);
  CHECK(file.job().losses() == 1);
  CHECK(file.job().crashes() == 1);
}

TEST_CASE("stats: a way back is counted once, whoever differed, and the steps given up do not count", "[stats]") {
  StatsTracker tracker("job", "line", 1);
  tracker.Joined(kStart, "a", "h", "cpu", "i");
  tracker.Agreed(70);
  tracker.Committed(60);

  tracker.DigestMismatch("a");
  RepairStats repair;
  repair.set_found_at(64);
  repair.set_back_to(48);
  repair.set_from_copy(true);
  *repair.add_workers() = std::string("worker-0");
  tracker.CommittedIs(40);
  tracker.WentBack("line~1", repair);

  const WorkerStatsFile file = tracker.Snapshot(kStart + absl::Seconds(2));
  CHECK(file.lineage() == "line~1");
  CHECK(file.job().digest_mismatches() == 1);
  CHECK(file.job().step() == 48);
  CHECK(file.job().committed_step() == 40);
  REQUIRE(file.repairs_size() == 1);
  CHECK(file.repairs(0).back_to() == 48);
  CHECK(file.workers(0).digest_mismatches() == 1);
  CHECK_FALSE(file.workers(0).connected());
}

TEST_CASE("stats: the newest repairs are kept, also by the next chief", "[stats]") {
  StatsTracker before("job", "line", 1);
  RepairStats repair;
  for (int i = 1; i <= 20; ++i) {
    repair.set_found_at(i);
    before.WentBack("line~1", repair);
  }

  StatsTracker after("job", "line~1", 2);
  after.Continue(ParseWorkerStats(EncodeWorkerStats(before.Snapshot(kStart)), "f").value());

  REQUIRE(after.repairs().size() == 16);
  CHECK(after.repairs()[0].found_at() == 5);
  CHECK(after.Snapshot(kStart).repairs(15).found_at() == 20);
}

TEST_CASE("stats: totals go on under the next chief, by way of the file", "[stats]") {
  StatsTracker before("job", "line", 1);
  before.Joined(kStart, "a", "h", "cpu", "i");
  before.Stepped(kStart + absl::Seconds(1), "a", Steps(2, 15));
  before.GenerationFormed();
  before.Agreed(2);
  before.Committed(0);
  before.SetTrained(absl::Seconds(1));
  before.SetSaves(1, 2);
  const std::string json = EncodeWorkerStats(before.Snapshot(kStart + absl::Seconds(2)));

  StatsTracker after("job", "line-2", 2);
  after.Continue(ParseWorkerStats(json, "f").value());
  after.Joined(kStart + absl::Seconds(9), "a", "h2", "cpu", "i");
  after.Stepped(kStart + absl::Seconds(10), "a", Steps(1, 10));
  after.Committed(3);
  after.SetSaves(3, 4);
  after.SetSaves(10, 4);

  const WorkerStatsFile file = after.Snapshot(kStart + absl::Seconds(10));
  CHECK(file.term() == 2);
  CHECK(file.lineage() == "line-2");
  CHECK(file.workers(0).steps() == 3);
  CHECK(file.workers(0).joins() == 2);
  CHECK(file.workers(0).host() == "h2");
  CHECK(file.workers(0).samples_per_second() == Approx(32));
  CHECK(file.job().chief_starts() == 2);
  CHECK(file.job().checkpoints() == 2);
  CHECK(file.job().saves_failed() == 11);
  CHECK(file.job().saves_skipped() == 6);
  CHECK(file.job().generations() == 1);
  CHECK(file.job().step() == 2);
  CHECK(file.job().trained_seconds() == 1);
  CHECK_FALSE(ParseWorkerStats("{\"x\":1}", "f").ok());
}

TEST_CASE("stats: stragglers and hosts are as last told, and hosts go on under the next chief", "[stats]") {
  StatsTracker before("job", "line", 1);
  before.Joined(kStart, "a", "h", "cpu", "i");
  before.Compared("a", true, 1.75);
  HostStats host;
  host.set_host("h");
  host.set_failures(3);
  host.set_excluded(true);
  host.set_cause("a died of signal 11");
  before.SetHosts({host});
  const std::string json = EncodeWorkerStats(before.Snapshot(kStart));
  CHECK(ParseWorkerStats(json, "f")->workers(0).straggler());
  CHECK(ParseWorkerStats(json, "f")->workers(0).slowdown() == 1.75);

  StatsTracker after("job", "line", 2);
  after.Continue(ParseWorkerStats(json, "f").value());

  CHECK_FALSE(after.Snapshot(kStart).workers(0).straggler());  // nobody is connected
  REQUIRE(after.Snapshot(kStart).hosts_size() == 1);
  CHECK(after.Snapshot(kStart).hosts(0).cause() == "a died of signal 11");
  after.SetHosts({});
  CHECK(after.Snapshot(kStart).hosts_size() == 0);
  before.Departed("a", Departure::kLost);
  CHECK_FALSE(before.Snapshot(kStart).workers(0).straggler());
}

TEST_CASE("stats: what a step takes now is the mean of the last 10 s, or of the last report", "[stats]") {
  StatsTracker tracker("job", "line", 1);
  CHECK(tracker.MeansOf(kStart, "a").total_ms == 0);
  tracker.Joined(kStart, "a", "h", "cpu", "i");
  CHECK(tracker.MeansOf(kStart, "a").total_ms == 0);
  tracker.Stepped(kStart + absl::Seconds(1), "a", Steps(7, 1000));
  tracker.Stepped(kStart + absl::Seconds(12), "a", Steps(1, 100));
  tracker.Stepped(kStart + absl::Seconds(13), "a", Steps(3, 20));
  tracker.Stepped(kStart + absl::Seconds(14), "a", {});

  const StepMeans means = tracker.MeansOf(kStart + absl::Seconds(14), "a");

  CHECK(means.total_ms == Approx(40));
  CHECK(means.compute_ms == Approx(20));
  CHECK(means.all_reduce_ms == Approx(10));
  CHECK(means.data_ms == Approx(5));
  CHECK(tracker.MeansOf(kStart + absl::Seconds(60), "a").total_ms == Approx(20));
  CHECK(tracker.StatsOf(kStart + absl::Seconds(14), "a").steps() == 11);
  CHECK(tracker.StatsOf(kStart + absl::Seconds(14), "b").worker().empty());
}

}  // namespace
}  // namespace lockstep::chief
