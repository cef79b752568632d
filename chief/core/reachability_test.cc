#include "chief/core/reachability.h"

#include <catch2/catch.hpp>
#include <functional>
#include <vector>

namespace lockstep::chief {
namespace {

const Incarnation kThis{1, 1};
const Incarnation kPeer{1, 2};
const Incarnation kC{1, 3};
const absl::Time kNow = absl::FromUnixSeconds(1000);

TEST_CASE("reachability: pairs that have met wait for nothing", "[core]") {
  Reachability pairs;
  CHECK(pairs.NextDeadline(kNow) == absl::InfiniteFuture());
  pairs.Asked(kThis, kPeer, kNow);
  CHECK(pairs.NextDeadline(kNow) == kNow + Reachability::kPatience);

  pairs.Succeeded(kPeer, kThis);

  CHECK(pairs.NextDeadline(kNow) == absl::InfiniteFuture());
}

TEST_CASE("reachability: the next test, the end of a doubt and the end of a pause are deadlines, while ahead",
          "[core]") {
  Reachability pairs;
  pairs.Failed(kThis, kPeer, kNow);
  CHECK(pairs.NextDeadline(kNow) == kNow + Reachability::kRetest);
  CHECK(pairs.NextDeadline(kNow + Reachability::kRetest) == absl::InfiniteFuture());

  pairs.Suspect(kThis, kC, false, kNow);
  pairs.Asked(kThis, kC, kNow);
  CHECK(pairs.NextDeadline(kNow + Reachability::kRetest) == kNow + Reachability::kDoubt);

  pairs.FormedTogether({kThis, kPeer});
  pairs.FormedTogether({kThis, kC});
  pairs.SuspectItself(kPeer, kNow);
  CHECK(pairs.NextDeadline(kNow) == kNow + Reachability::Pause(1));
  pairs.Forget(kPeer);
  CHECK(pairs.NextDeadline(kNow) == absl::InfiniteFuture());
}

// ---- crowds

constexpr size_t kMany = 500;

Incarnation Nth(size_t index) { return Incarnation{2, index + 1}; }

Reachability::Ids Those(size_t first, size_t end) {
  Reachability::Ids ids;
  for (size_t index = first; index < end; ++index) ids.insert(Nth(index));
  return ids;
}

struct Crowd {
  Crowd() {
    for (size_t index = 0; index < kMany; ++index) Come(index);
  }
  void Come(size_t index) {
    pairs.Came(Nth(index));
    ready.push_back({Nth(index), /*at_rest=*/true});
  }
  // Carries out what is due; `fails(tester, peer)` says how each ends. Returns how many tests there were.
  size_t Test(const std::function<bool(size_t, size_t)>& fails = [](size_t, size_t) { return false; }) {
    size_t count = 0;
    for (const Reachability::Test& test : pairs.TakeTests(ready, now)) {
      for (const size_t peer : test.peers) {
        ++count;
        if (fails(test.tester, peer)) {
          pairs.Failed(ready[test.tester].id, ready[peer].id, now);
        } else {
          pairs.Succeeded(ready[test.tester].id, ready[peer].id);
        }
      }
    }
    return count;
  }
  std::vector<Incarnation> Team() const {
    std::vector<Incarnation> candidates;
    for (const auto& candidate : ready) candidates.push_back(candidate.id);
    return pairs.LargestTeam(candidates);
  }

  Reachability pairs;
  std::vector<Reachability::Candidate> ready;
  absl::Time now = kNow;
};

TEST_CASE("reachability: in a crowd each worker tests a few others, and all of them make a team", "[core]") {
  Crowd crowd;
  CHECK(crowd.Team().empty());

  CHECK(crowd.Test() <= kMany * Reachability::SampleOf(kMany - 1));

  CHECK(crowd.Team().size() == kMany);
  CHECK(crowd.Test() == 0);
  CHECK(crowd.pairs.Reached(Nth(0), Nth(kMany - 1)));
  CHECK(crowd.pairs.ReachesAll(Nth(0), Those(0, kMany)));
}

TEST_CASE("reachability: a newcomer to a crowd is no member before it has reached a few", "[core]") {
  Crowd crowd;
  crowd.Test();
  crowd.pairs.FormedTogether(Those(0, kMany));
  for (auto& member : crowd.ready) member.at_rest = false;
  crowd.Come(kMany);
  CHECK_FALSE(crowd.pairs.ReachesAll(Nth(kMany), Those(0, kMany)));

  CHECK(crowd.Test() == Reachability::SampleOf(kMany));

  CHECK(crowd.pairs.ReachesAll(Nth(kMany), Those(0, kMany)));
}

TEST_CASE("reachability: a worker that a crowd cannot reach stays outside, and is tested again", "[core]") {
  Crowd crowd;
  const auto alone = [](size_t tester, size_t peer) { return tester == 7 || peer == 7; };

  while (crowd.Test(alone) != 0) {
  }

  CHECK(crowd.Team().size() == kMany - 1);
  CHECK(crowd.pairs.ApartFromSome(Nth(7), Those(0, kMany)));
  CHECK(crowd.pairs.ApartPairs(3).size() == 3);
  crowd.now += Reachability::kRetest;
  CHECK(crowd.Test() != 0);
  CHECK(crowd.Team().size() == kMany);
}

TEST_CASE("reachability: two of a crowd whose generation failed over each other are not both in the next", "[core]") {
  Crowd crowd;
  crowd.Test();
  crowd.pairs.FormedTogether(Those(0, kMany));

  crowd.pairs.Suspect(Nth(3), Nth(4), /*while_forming=*/true, crowd.now);

  CHECK(crowd.pairs.DoubtedAmong(Nth(3), Those(0, kMany), crowd.now) == Nth(4));
  CHECK(crowd.pairs.DoubtedAmong(Nth(5), Those(0, kMany), crowd.now).IsNone());
  CHECK(crowd.Team().size() == kMany - 1);
}

TEST_CASE("reachability: a crowd that failed for no known reason proves itself again", "[core]") {
  Crowd crowd;
  crowd.Test();
  crowd.pairs.FormedTogether(Those(0, kMany));

  crowd.pairs.SuspectAll(Those(0, kMany), crowd.now);

  CHECK(crowd.Team().empty());
  CHECK(crowd.pairs.DoubtedAmong(Nth(0), Those(0, kMany), crowd.now) == Nth(0));
  CHECK(crowd.Test() != 0);
  CHECK(crowd.Team().size() == kMany);
  CHECK(crowd.pairs.DoubtedAmong(Nth(0), Those(0, kMany), crowd.now).IsNone());
}

TEST_CASE("reachability: what is left of a crowd after most have gone still knows itself", "[core]") {
  Crowd crowd;
  crowd.Test();
  crowd.pairs.FormedTogether(Those(0, kMany));

  for (size_t index = 10; index < kMany; ++index) crowd.pairs.Forget(Nth(index));
  crowd.ready.resize(10);

  CHECK_FALSE(crowd.pairs.IsCrowd());
  CHECK(crowd.Team().size() == 10);
  CHECK(crowd.pairs.NextDeadline(crowd.now) == absl::InfiniteFuture());
}

}  // namespace
}  // namespace lockstep::chief
