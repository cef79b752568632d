// Restores that fail again and again: what ends them (rules 12 and 18).
#include <catch2/catch.hpp>
#include <utility>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

// Workers 0 and 1 restore together again and again; worker 1 gets its Form and says nothing of it.
struct Restoring {
  Restoring() {
    chief.on_form = [this](int i) {
      chief.worker(i).has_state = false;
      return true;
    };
    for (int i : {0, 1}) chief.Connect(i);
    chief.Advance(absl::Seconds(1));
  }
  void Rest(int index) {
    FakeWorker& w = chief.worker(index);
    const Generation old = std::exchange(w.generation, Generation());
    chief.Say(index, VerdictAck{old, false, "", {}, ""});
  }
  ChiefHarness chief{{.min = 2, .max = 2, .expected = 2, .checkpoint_step = 0}};
};

TEST_CASE("coordinator: damaged shards end the job also where a member is lost in each restore", "[core]") {
  Restoring test;
  ChiefHarness& chief = test.chief;
  for (int round = 0; round < 10 && !chief.ended(); ++round) {
    REQUIRE_FALSE(chief.worker(0).generation.IsNone());
    chief.worker(1).mute = true;
    chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "a shard is damaged", /*damaged=*/true});
    const bool lost = round % 2 == 0;
    if (lost) {
      chief.Kill(1);
      chief.Connect(1);
    } else {
      test.Rest(1);
      chief.worker(1).mute = false;
    }
    chief.Advance(absl::Seconds(15));
  }
  CHECK(chief.Last<Exit>().code == 74);
}

TEST_CASE("coordinator: the word of damaged shards counts also when it comes behind another member's", "[core]") {
  Restoring test;
  ChiefHarness& chief = test.chief;
  for (int round = 0; round < 10 && !chief.ended(); ++round) {
    const Generation generation = chief.worker(1).generation;
    REQUIRE_FALSE(generation.IsNone());
    chief.worker(1).mute = true;
    chief.Say(0, PeerFailed{generation, {}, false, "the connection ended"});
    chief.Say(1, PeerFailed{generation, {}, false, "a shard is damaged", /*damaged=*/true});
    test.Rest(1);
    chief.worker(1).mute = false;
    chief.Advance(absl::Seconds(15));
  }
  CHECK(chief.Last<Exit>().code == 74);
}

TEST_CASE("coordinator: a worker that dies in each restore does not put it off for ever for the others", "[core]") {
  ChiefHarness chief({.expected = 2});
  chief.on_form = [&](int i) {
    chief.worker(i).has_state = false;
    return true;
  };
  chief.Connect(0);
  chief.Connect(1);
  bool alone = false;
  for (int round = 0; round < 12 && !alone; ++round) {
    chief.Advance(absl::Seconds(3));
    chief.Kill(1);
    chief.Advance(absl::Seconds(7));
    for (const Form& form : chief.Commands<Form>(0)) alone = alone || form.members.size() == 1;
    if (!alone) chief.Connect(1);
  }
  CHECK(alone);
}

}  // namespace
}  // namespace lockstep::chief
