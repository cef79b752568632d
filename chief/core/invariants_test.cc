#include "chief/core/invariants.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// Two members of a generation that steps, and a spare: nothing is wrong.
struct State {
  State() {
    for (uint64_t i = 0; i < 3; ++i) {
      Worker worker;
      worker.member = Member{Incarnation{0, i + 1}, absl::StrCat("worker-", i), ""};
      worker.session = i + 1;
      worker.host = i < 2 ? "one" : "other";
      if (i < 2) worker.busy = current;
      if (i < 2) members.push_back(worker.member);
      roster.Add(worker);
    }
  }
  Worker& worker(uint64_t i) { return *roster.Find(Incarnation{0, i + 1}); }
  std::string Broken() {
    return BrokenInvariant({in_full, runs, current, members, roster, history, same_job_lineage, drains, before,
                            published, actions, left_out});
  }

  bool in_full = true;
  bool runs = true;
  Generation current{1, 7};
  std::vector<Member> members;
  Roster roster;
  History history{"lineage"};
  bool same_job_lineage = true;
  Drains drains;
  SnapshotId before{"lineage", 10, "ten"};
  SnapshotId published{"lineage", 10, "ten"};
  std::vector<Action> actions;
  std::vector<std::string> left_out;
};

TEST_CASE("invariants: whoever a drain names is on its way out", "[core]") {
  State state;
  state.drains.Saw("worker-2", "");
  state.drains.Add("worker-2", absl::InfiniteFuture());
  CHECK_THAT(state.Broken(), Contains("worker-2") && Contains("is drained"));

  state.worker(2).leaving = true;

  CHECK(state.Broken().empty());
}

TEST_CASE("invariants: a job that steps and saves breaks none", "[core]") {
  State state;
  CHECK(state.Broken().empty());

  state.actions.emplace_back(PublishCommit{SnapshotId{"lineage", 20, "twenty"}, ""});
  CHECK(state.Broken().empty());
  state.worker(2).busy = Generation{1, 5};
  state.worker(2).verdict_sent = true;
  state.left_out = {"one"};

  CHECK(state.Broken().empty());
}

TEST_CASE("invariants: what is published goes back only where another lineage begins", "[core]") {
  State state;
  state.before = SnapshotId{"lineage", 20, "twenty"};
  CHECK_FALSE(state.Broken().empty());

  state.same_job_lineage = false;

  CHECK(state.Broken().empty());
}

TEST_CASE("invariants: each that is broken is named", "[core]") {
  State state;
  std::string says;
  SECTION("two workers on one session") {
    state.worker(2).session = 1;
    says = "session 1 belongs to two workers";
  }
  SECTION("two workers of one name") {
    state.worker(2).member.name = "worker-0";
    says = "two workers have the name worker-0";
  }
  SECTION("a generation that steps without a member") {
    state.roster.Remove(Incarnation{0, 2});
    says = "steps without its member worker-1";
  }
  SECTION("a member that runs something else") {
    state.worker(1).busy = Generation{1, 6};
    says = "is a member of generation 1.7 and runs 1.6";
  }
  SECTION("two generations that step") {
    state.worker(2).busy = Generation{1, 5};
    says = "worker-2 runs generation 1.5 beside 1.7";
  }
  SECTION("a checkpoint that goes back") {
    state.published.step = 9;
    says = "is the newest checkpoint after step 10";
  }
  SECTION("an older checkpoint that is to be published") {
    state.actions.emplace_back(PublishCommit{SnapshotId{"lineage", 10, "other"}, ""});
    says = "is to be published after step 10";
  }
  SECTION("a checkpoint of another life") {
    state.actions.emplace_back(PublishCommit{SnapshotId{"another", 20, "twenty"}, ""});
    says = "which the job does not contain";
  }
  SECTION("the only host, left out") {
    state.roster.Remove(Incarnation{0, 3});
    state.runs = false;
    state.left_out = {"one"};
    says = "host one is left out, and no other one takes part";
  }

  CHECK_THAT(state.Broken(), Contains(says));
}

}  // namespace
}  // namespace lockstep::chief
