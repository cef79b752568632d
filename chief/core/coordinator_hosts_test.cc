// Hosts whose workers fail by their own fault, again and again, are left out.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"
#include "common/protocol/text.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// Workers 0 and 1 on host "bad", the others each on one of its own.
struct Job {
  explicit Job(int workers, ChiefHarness::Options options = {}) : chief(WithExpected(options, workers)) {
    for (int i = 0; i < workers; ++i) {
      OnBadHost(i);
      chief.Connect(i);
    }
  }
  static ChiefHarness::Options WithExpected(ChiefHarness::Options options, int workers) {
    options.expected = static_cast<uint32_t>(workers);
    return options;
  }
  void OnBadHost(int index) {
    if (index < 2) chief.worker(index).hello.host = "bad";
  }
  // Its next process comes, is refused or joins.
  void Restart(int index) {
    chief.NewProcess(index);
    OnBadHost(index);
    chief.Connect(index);
    if (chief.phase() == Phase::kRunning) chief.MeetAtBoundary();
  }
  void Fail(int index) { chief.Say(index, ErrorReport{70, 0, "the device is lost"}); }
  bool IsExcluded(const std::string& host) {
    for (const HostRecord& record : chief.View().hosts) {
      if (record.host == host) return record.excluded;
    }
    return false;
  }

  ChiefHarness chief;
};

TEST_CASE("coordinator: a host is left out after its third error, and the job goes on without spending its budget",
          "[core]") {
  Job job(3);
  job.chief.StepTo(5);
  for (int i = 0; i < 2; ++i) {
    job.Fail(1);
    job.Restart(1);
  }
  REQUIRE(job.chief.Members() == std::vector<int>{0, 1, 2});
  CHECK(job.chief.View().failures == 2);
  CHECK_FALSE(job.IsExcluded("bad"));

  job.Fail(1);

  CHECK(job.IsExcluded("bad"));
  CHECK(job.chief.View().failures == 0);
  CHECK_THAT(job.chief.Said(), Contains("host bad is left out of this job: 3 failures") &&
                                   Contains("worker-1 on bad at step 0: the device is lost"));
  // The other one on that host is at rest as well: it is not taken again.
  CHECK(job.chief.Members() == std::vector<int>{2});
  CHECK(job.chief.worker(0).exit_code == 78);
  job.Restart(1);
  CHECK(job.chief.worker(1).exit_code == 78);
  CHECK_THAT(job.chief.LastCommand<Refused>(1).message, Contains("host bad") && Contains("exclude_host_after: 0"));

  job.chief.StepTo(job.chief.config().policy.training.end_step);
  job.chief.Advance(absl::Seconds(10));
  REQUIRE(job.chief.ended());
  CHECK(job.chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: generations that one host breaks stop no job that will go on without it", "[core]") {
  Job job(4, {.policy = {.exclude_host_after = 5}});
  job.chief.StepTo(5);
  for (int i = 0; i < 4; ++i) {
    job.Fail(1);
    job.chief.Advance(absl::Seconds(20));  // then it may join again
    job.Restart(1);
    REQUIRE(job.chief.Members() == std::vector<int>{0, 1, 2, 3});
  }
  CHECK_FALSE(job.IsExcluded("bad"));

  job.Fail(1);

  CHECK(job.IsExcluded("bad"));
  CHECK(job.chief.View().failures == 0);
  CHECK(job.chief.Members() == std::vector<int>{2, 3});
  job.chief.StepTo(9);
  CHECK_FALSE(job.chief.ended());
}

TEST_CASE("coordinator: three generations in a row stop the job where no host can be left out for them", "[core]") {
  // No host is ever left out; too few would be left; two hosts broke them.
  const int variant = GENERATE(0, 1, 2);
  Job job(4, {.min = variant == 1 ? 3u : 1u, .policy = {.exclude_host_after = variant == 0 ? 0u : 5u}});
  job.chief.StepTo(5);
  for (int i = 0; i < 3; ++i) {
    REQUIRE_FALSE(job.chief.ended());
    const int victim = variant == 2 && i == 1 ? 2 : 1;
    job.Fail(victim);
    job.chief.Advance(absl::Seconds(20));
    if (!job.chief.ended()) job.Restart(victim);
  }
  job.chief.Advance(absl::Seconds(10));

  REQUIRE(job.chief.ended());
  CHECK(job.chief.Last<Exit>().code == 70);
  CHECK_THAT(job.chief.Last<Exit>().reason, Contains("3 generations in a row"));
}

TEST_CASE("coordinator: crash signals count for the host, whichever is heard first; kills, losses and silence do not",
          "[core]") {
  const bool report_first = GENERATE(false, true);
  Job job(3);
  uint64_t step = 0;
  const auto die = [&](int signal) {
    job.chief.StepTo(++step);
    if (report_first) job.chief.Do(ProcessExited{"worker-1", signal, 0});
    job.chief.Reset(1);
    if (!report_first) job.chief.Do(ProcessExited{"worker-1", signal, 0});
    job.Restart(1);
  };
  for (int i = 0; i < 20; ++i) die(9);
  job.chief.worker(1).beating = false;
  job.chief.Advance(absl::Seconds(10));
  job.Restart(1);
  CHECK(job.chief.View().hosts.empty());

  for (int i = 0; i < 2; ++i) die(11);
  CHECK_FALSE(job.IsExcluded("bad"));
  die(6);

  CHECK(job.IsExcluded("bad"));
  CHECK(job.chief.worker(1).exit_code == 78);
  CHECK(job.chief.View().failures == 0);
}

TEST_CASE("coordinator: errors of the data are nobody's fault", "[core]") {
  Job job(3);

  job.chief.Say(1, ErrorReport{65, 4, "conv1.weight became NaN (on_nan: stop)"});

  CHECK(job.chief.View().hosts.empty());
}

TEST_CASE("coordinator: the only host is never left out, nor one without which too few workers are left", "[core]") {
  const bool alone = GENERATE(false, true);
  Job job(alone ? 2 : 3, {.min = alone ? 1u : 2u});
  uint64_t step = 0;
  int errors = 0;
  while (!job.chief.ended() && errors < 20) {
    job.chief.StepTo(++step);
    job.Fail(1);
    ++errors;
    CHECK_FALSE(job.IsExcluded("bad"));
    if (job.chief.phase() == Phase::kDone) job.chief.Advance(absl::Seconds(10));
    if (job.chief.ended()) break;
    job.Restart(1);
    job.chief.StepTo(++step);
  }

  // As ever: the budget stops the job.
  CHECK(errors == 6);
  REQUIRE(job.chief.ended());
  CHECK(job.chief.Last<Exit>().code == 70);
}

TEST_CASE("coordinator: workers of a host that is left out go at a boundary", "[core]") {
  Job job(4);
  job.chief.StepTo(5);
  for (int i = 0; i < 3; ++i) {
    // In no generation: it breaks none.
    job.chief.Kill(1);
    job.chief.worker(1).hello.host = "bad";
    job.chief.Do(ProcessExited{"worker-1", 11, 0});
  }
  REQUIRE(job.IsExcluded("bad"));
  CHECK(job.chief.Members() == std::vector<int>{0, 2, 3});
  CHECK(job.chief.worker(0).requests.count(RequestKind::kForm) == 1);
  CHECK(job.chief.worker(0).exit_code == -1);

  job.chief.MeetAtBoundary();

  CHECK(job.chief.Members() == std::vector<int>{2, 3});
  CHECK(job.chief.worker(0).exit_code == 78);
  CHECK(job.chief.worker(2).position == Position{5, 0});
}

TEST_CASE("coordinator: what only a host holds that is left out is handed over first", "[core]") {
  // Workers 0 and 1 are the members, 2 is spare and holds nothing.
  Job job(3, {.logical_shards = 2});
  job.chief.StepTo(7);
  for (int i = 0; i < 2; ++i) {
    job.Fail(1);
    job.chief.NewProcess(1);
    job.OnBadHost(1);
    job.chief.Connect(1);
    REQUIRE(job.chief.Members() == std::vector<int>{0, 2});  // the spare one took its place
    job.chief.Kill(2);
    job.chief.Connect(2);
  }
  REQUIRE(job.chief.Members() == std::vector<int>{0, 1});
  job.chief.StepTo(9);

  job.Fail(1);

  REQUIRE(job.IsExcluded("bad"));
  REQUIRE(job.chief.Members() == std::vector<int>{0, 2});
  CHECK(job.chief.worker(2).position == Position{9, 0});
  CHECK(job.chief.worker(0).exit_code == -1);
  CHECK(job.chief.worker(2).requests.count(RequestKind::kForm) == 1);
  job.chief.MeetAtBoundary();
  CHECK(job.chief.Members() == std::vector<int>{2});
  CHECK(job.chief.worker(0).exit_code == 78);
  CHECK(job.chief.worker(2).position == Position{9, 0});
}

TEST_CASE("coordinator: a host that is left out serves while there is no other, and goes when there is", "[core]") {
  Job job(3);
  job.chief.StepTo(3);
  for (int i = 0; i < 3; ++i) {
    job.Fail(1);
    if (i < 2) job.Restart(1);
  }
  REQUIRE(job.chief.Members() == std::vector<int>{2});
  job.chief.Kill(2);

  job.Restart(1);
  job.chief.Advance(absl::Seconds(40));
  CHECK(job.chief.Members() == std::vector<int>{1});
  CHECK(job.chief.View().failures == 0);
  job.Fail(1);
  CHECK(job.chief.View().failures == 1);  // there is nobody else to go on with
  job.Restart(1);
  job.chief.Advance(absl::Seconds(40));
  REQUIRE(job.chief.Members() == std::vector<int>{1});

  job.chief.Connect(2);
  REQUIRE(job.chief.worker(1).requests.count(RequestKind::kForm) == 1);
  job.chief.MeetAtBoundary();
  CHECK(job.chief.Members() == std::vector<int>{1, 2});  // it hands over what it holds
  REQUIRE(job.chief.worker(1).requests.count(RequestKind::kForm) == 1);
  job.chief.MeetAtBoundary();
  CHECK(job.chief.Members() == std::vector<int>{2});
  CHECK(job.chief.worker(1).exit_code == 78);
}

TEST_CASE("coordinator: a replica whose state differs from the majority's counts for its host", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(16);
  chief.worker(1).digest_suffix = "?";

  for (int i = 0; i < 3; ++i) chief.Audit(i);
  const SnapshotId audited{"lineage-1", 0, "digest-of-0"};
  chief.Do(RepairRecorded{chief.Last<RecordRepair>().lineage, audited, {}, true, {}});

  REQUIRE(chief.View().hosts.size() == 1);
  CHECK(chief.View().hosts[0].host == "host-1");
  CHECK(chief.View().hosts[0].failures == 1);
  CHECK_THAT(chief.View().hosts[0].cause, Contains("worker-1") && Contains("step 16"));
}

TEST_CASE("coordinator: the next chief knows the hosts that failed", "[core]") {
  Job job(3);
  job.chief.StepTo(5);
  for (int i = 0; i < 3; ++i) {
    job.Fail(1);
    if (i < 2) job.Restart(1);
  }
  REQUIRE(job.IsExcluded("bad"));
  CoordinatorConfig config = job.chief.config();
  config.recovered.term = 2;
  config.recovered.hosts = job.chief.View().hosts;

  CoordinatorConfig read;
  REQUIRE(text::FromText(text::ToText(config), read).ok());
  Coordinator next(read);

  CHECK(next.View().hosts == config.recovered.hosts);
}

}  // namespace
}  // namespace lockstep::chief
