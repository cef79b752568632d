// Members that hold the others up: seen by everybody, and replaced where the job says so.
#include <catch2/catch.hpp>
#include <map>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

// A chief whose members make a step a second and tell how long they compute.
class JobWithStraggler {
 public:
  JobWithStraggler(uint32_t workers, uint32_t logical_shards, bool replace)
      : chief(Options(workers, logical_shards, replace)) {}

  // Every member makes `steps` more steps.
  void Run(int steps) {
    for (int i = 0; i < steps; ++i) {
      ++step;
      chief.Advance(absl::Seconds(1));
      for (const int index : chief.Members()) {
        FakeWorker& w = chief.worker(index);
        w.position = Position{step, 0};
        Counters& counters = counters_[w.id];
        counters.steps += 1;
        counters.seconds += seconds.count(index) != 0 ? seconds[index] : 0.1;
        chief.Say(index, Report{w.generation,
                                w.lineage,
                                w.position,
                                {},
                                {},
                                {{"steps", counters.steps},
                                 {"samples", 32 * counters.steps},
                                 {"compute_seconds", counters.seconds}}});
      }
    }
  }
  std::string State(const std::string& name) {
    for (const auto& line : chief.View().workers) {
      if (line.name == name) return line.state;
    }
    return "";
  }
  bool Meets() { return chief.worker(chief.Members().front()).requests.count(RequestKind::kForm) != 0; }

  ChiefHarness chief;
  std::map<int, double> seconds;  // that a member computes in a step; else 0.1
  uint64_t step = 0;

 private:
  struct Counters {
    double steps = 0;
    double seconds = 0;
  };
  static ChiefHarness::Options Options(uint32_t workers, uint32_t logical_shards, bool replace) {
    ChiefHarness::Options options;
    options.workers = workers;
    options.logical_shards = logical_shards;
    options.policy.replace_stragglers = replace;
    return options;
  }
  std::map<Incarnation, Counters> counters_;
};

TEST_CASE("coordinator: a straggler is seen in status and log until it recovers, and remains a member", "[core]") {
  JobWithStraggler job(3, 2, /*replace=*/false);
  REQUIRE(job.chief.Members() == std::vector<int>{0, 1});
  job.seconds[1] = 0.18;

  job.Run(21);

  CHECK(job.State("worker-1") == "straggler");
  CHECK(job.State("worker-0") == "member");
  CHECK(job.chief.View().workers[1].rank == 1);
  CHECK(job.chief.View().workers[1].slowdown == Approx(1.8));
  CHECK_THAT(job.chief.Said(), Contains("worker-1 on host-1 is a straggler") && Contains("1.80 times the median"));
  CHECK_FALSE(job.Meets());

  job.seconds[1] = 0.1;
  job.Run(20);
  CHECK(job.State("worker-1") == "member");
  CHECK_THAT(job.chief.Said(), Contains("worker-1 on host-1 is no straggler any more"));
}

TEST_CASE("coordinator: a spare worker takes a straggler's place, which is not chosen again while others are there",
          "[core]") {
  JobWithStraggler job(3, 2, /*replace=*/true);
  job.seconds[1] = 0.3;
  job.Run(21);
  REQUIRE(job.Meets());
  CHECK_THAT(job.chief.Said(), Contains("worker-2 takes the place of worker-1, a straggler"));

  job.chief.MeetAtBoundary();
  CHECK(job.chief.Members() == std::vector<int>{0, 2});
  CHECK(job.chief.worker(2).position == Position{21, 0});
  CHECK(job.chief.View().losses == 0);

  // Its place is taken, however often a generation is formed for another reason.
  job.Run(30);
  CHECK_FALSE(job.Meets());
  CHECK(job.State("worker-1") == "spare");
  job.chief.Say(0, PeerFailed{job.chief.worker(0).generation, {}, false, "a broken connection", false});
  CHECK(job.chief.Members() == std::vector<int>{0, 2});

  // With nobody else left it serves again.
  job.chief.Kill(2);
  CHECK(job.chief.Members() == std::vector<int>{0, 1});
}

TEST_CASE("coordinator: a straggler among spare stragglers is only named, until a spare comes that is none", "[core]") {
  JobWithStraggler job(3, 2, /*replace=*/true);
  job.seconds[1] = job.seconds[2] = 0.3;
  job.Run(21);
  job.chief.MeetAtBoundary();
  REQUIRE(job.chief.Members() == std::vector<int>{0, 2});

  job.Run(100);
  CHECK(job.State("worker-2") == "straggler");
  CHECK_FALSE(job.Meets());
  CHECK_THAT(job.chief.Said(), Contains("no spare worker can take its place"));

  job.chief.Connect(3);
  REQUIRE(job.Meets());
  job.chief.MeetAtBoundary();
  CHECK(job.chief.Members() == std::vector<int>{0, 3});
}

TEST_CASE("coordinator: a spare worker that does not reach every member takes nobody's place", "[core]") {
  JobWithStraggler job(2, 2, /*replace=*/true);
  job.chief.worker(2).unreachable = {"worker-0"};
  job.chief.Connect(2);
  job.seconds[1] = 0.3;

  job.Run(60);

  CHECK(job.State("worker-1") == "straggler");
  CHECK_FALSE(job.Meets());
}

TEST_CASE("coordinator: a swap that came to nothing is not asked for again with the same spare worker", "[core]") {
  JobWithStraggler job(3, 2, /*replace=*/true);
  job.chief.on_form = [&](int index) {
    FakeWorker& w = job.chief.worker(index);
    if (index == 2) job.chief.Say(2, PeerFailed{w.generation, w.id, true, "no address", false});
    return index == 2;
  };
  job.seconds[1] = 0.3;
  job.Run(21);
  REQUIRE(job.Meets());
  job.chief.MeetAtBoundary();
  REQUIRE(job.chief.Members() == std::vector<int>{0, 1});
  REQUIRE(job.chief.View().generation.counter == 3);

  job.Run(120);

  CHECK(job.State("worker-1") == "straggler");
  CHECK_FALSE(job.Meets());
  CHECK(job.chief.View().generation.counter == 3);
}

TEST_CASE("coordinator: what only a straggler holds goes on with it", "[core]") {
  JobWithStraggler job(4, 2, /*replace=*/true);
  job.seconds[1] = 0.3;
  job.Run(21);
  REQUIRE(job.Meets());

  // The other member dies before they meet: two spare workers are there, and one that holds the state.
  job.chief.Kill(0);

  REQUIRE(job.chief.Members().size() == 2);
  const Form form = job.chief.LastCommand<Form>(1);
  CHECK(form.position == Position{21, 0});
  CHECK_FALSE(form.restore.has_value());

  job.Run(1);
  REQUIRE(job.Meets());
  job.chief.MeetAtBoundary();
  CHECK(job.chief.Members() == std::vector<int>{2, 3});
  CHECK(job.chief.worker(3).position == Position{22, 0});
}

}  // namespace
}  // namespace lockstep::chief
