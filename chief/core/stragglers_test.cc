#include "chief/core/stragglers.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lockstep::chief {
namespace {

// Members that make a step a second and report every step.
class WatchedTeam {
 public:
  // Seconds that each member computes in a step, and its samples.
  struct Pace {
    double seconds = 0.1;
    double samples = 32;
  };

  explicit WatchedTeam(std::vector<Pace> paces) : paces_(std::move(paces)), counters_(paces_.size()) {}

  static Incarnation Id(size_t member) { return Incarnation{1, member + 1}; }
  Pace& pace(size_t member) { return paces_[member]; }
  void NextGeneration() { ++generation_.counter; }
  // Returns what changed in these steps.
  std::vector<Stragglers::Change> Run(int steps) {
    std::vector<Stragglers::Change> changes;
    for (int i = 0; i < steps; ++i) {
      now_ += period;
      for (size_t m = 0; m < paces_.size(); ++m) {
        counters_[m].steps += 1;
        counters_[m].samples += paces_[m].samples;
        counters_[m].compute_seconds += paces_[m].seconds;
        for (const auto& change : stragglers.Told(now_, generation_, paces_.size(), Id(m), counters_[m])) {
          changes.push_back(change);
        }
      }
    }
    return changes;
  }
  void Restart(size_t member) { counters_[member] = {}; }

  Stragglers stragglers;
  absl::Duration period = absl::Seconds(1);

 private:
  std::vector<Pace> paces_;
  std::vector<Stragglers::Counters> counters_;
  Generation generation_{1, 1};
  absl::Time now_ = absl::FromUnixSeconds(1000);
};

TEST_CASE("stragglers: a member that computes 1.5 times the median over 20 steps is one, until it recovers", "[core]") {
  WatchedTeam team({{0.1}, {0.1}, {0.1}, {0.15001}});
  REQUIRE(team.Run(20).empty());  // the first report is where the window begins

  const auto marked = team.Run(1);

  REQUIRE(marked.size() == 1);
  CHECK(marked[0].worker == WatchedTeam::Id(3));
  CHECK(marked[0].straggles);
  CHECK(marked[0].slowdown == Approx(1.5).margin(0.01));
  CHECK(team.stragglers.Straggles(WatchedTeam::Id(3)));
  CHECK_FALSE(team.stragglers.Straggles(WatchedTeam::Id(0)));

  team.pace(3).seconds = 0.13;  // better, but not as the others
  CHECK(team.Run(40).empty());
  team.pace(3).seconds = 0.11;
  const auto recovered = team.Run(20);
  REQUIRE(recovered.size() == 1);
  CHECK_FALSE(recovered[0].straggles);
  CHECK_FALSE(team.stragglers.Any());
}

TEST_CASE("stragglers: a little slower is no straggler", "[core]") {
  WatchedTeam team({{0.1}, {0.1}, {0.149}});

  CHECK(team.Run(100).empty());
  CHECK(team.stragglers.Slowdown(WatchedTeam::Id(2)) == Approx(1.49));
}

TEST_CASE("stragglers: of two members one is compared with the other", "[core]") {
  WatchedTeam team({{0.1}, {0.16}});

  CHECK(team.Run(21).size() == 1);
  CHECK(team.stragglers.Straggles(WatchedTeam::Id(1)));
}

TEST_CASE("stragglers: a member alone is compared with nobody", "[core]") {
  WatchedTeam team(std::vector<WatchedTeam::Pace>{{5}});

  CHECK(team.Run(100).empty());
}

TEST_CASE("stragglers: who holds more of the batch is slow by design, and who holds less by nature", "[core]") {
  WatchedTeam more({{0.1, 32}, {0.1, 32}, {0.2, 64}});
  CHECK(more.Run(100).empty());

  // An update that costs the same whatever the share: few samples, and much time for each.
  WatchedTeam less({{0.12, 64}, {0.12, 64}, {0.11, 32}});
  CHECK(less.Run(100).empty());

  WatchedTeam slow({{0.2, 64}, {0.1, 32}, {0.2, 32}, {0.1, 32}});
  slow.Run(100);
  CHECK(slow.stragglers.Straggles(WatchedTeam::Id(2)));
  CHECK_FALSE(slow.stragglers.Straggles(WatchedTeam::Id(0)));
}

TEST_CASE("stragglers: a hiccup among fast steps makes no straggler", "[core]") {
  WatchedTeam team({{0.001}, {0.001}, {0.001}});
  team.period = absl::Milliseconds(1);
  CHECK(team.Run(1000).empty());
  team.pace(2).seconds = 0.5;
  CHECK(team.Run(1).empty());
  team.pace(2).seconds = 0.001;

  CHECK(team.Run(20000).empty());
}

TEST_CASE("stragglers: a generation begins new windows and keeps the marks", "[core]") {
  WatchedTeam team({{0.1}, {0.1}, {0.3}});
  team.Run(21);
  REQUIRE(team.stragglers.Straggles(WatchedTeam::Id(2)));
  team.pace(2).seconds = 0.1;
  team.Run(19);

  team.NextGeneration();

  CHECK(team.Run(20).empty());
  CHECK(team.stragglers.Straggles(WatchedTeam::Id(2)));
  CHECK(team.Run(1).size() == 1);
  CHECK_FALSE(team.stragglers.Straggles(WatchedTeam::Id(2)));
}

TEST_CASE("stragglers: counters that go back or are no numbers begin a new window", "[core]") {
  WatchedTeam team({{0.1}, {0.1}, {0.3}});
  team.Run(15);
  team.Restart(2);

  CHECK(team.Run(20).empty());
  CHECK(team.Run(2).size() == 1);

  team.pace(2).seconds = std::nan("");
  CHECK(team.Run(100).empty());
}

TEST_CASE("stragglers: a worker that is gone is forgotten, and a pair is tried once", "[core]") {
  WatchedTeam team({{0.1}, {0.1}, {0.3}});
  team.Run(21);

  CHECK(team.stragglers.Try(WatchedTeam::Id(2), WatchedTeam::Id(7)));
  CHECK_FALSE(team.stragglers.Try(WatchedTeam::Id(2), WatchedTeam::Id(7)));
  CHECK(team.stragglers.Try(WatchedTeam::Id(2), WatchedTeam::Id(8)));
  team.stragglers.Forget(WatchedTeam::Id(2));

  CHECK_FALSE(team.stragglers.Any());
  CHECK(team.stragglers.Try(WatchedTeam::Id(2), WatchedTeam::Id(7)));
}

}  // namespace
}  // namespace lockstep::chief
