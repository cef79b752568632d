#include "chief/core/preparation.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"
#include "common/status/exit_code.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Stage = Worker::Stage;

struct Fresh : CoreFixture {
  explicit Fresh(const std::string& plan = "") : preparation(With(plan)) {
    for (int index = 0; index < 2; ++index) Add(index).stage = Stage::kWelcomed;
    policy.training.settings = "settings";
  }
  static RecoveredState With(const std::string& plan) {
    RecoveredState recovered;
    recovered.plan_hash = plan;
    return recovered;
  }
  Ready ReadyWith(const std::string& plan, const std::string& data = "data") {
    Ready ready;
    ready.plan_hash = plan;
    ready.data_digest = data;
    ready.settings = "settings";
    return ready;
  }

  Preparation preparation;
};

TEST_CASE("preparation: one worker makes the plan, then all prepare by it", "[core]") {
  Fresh test;
  test.preparation.Advance(test.Now());
  test.preparation.Advance(test.Now());
  CHECK(test.TakeCommands<MakePlan>().size() == 1);
  CHECK(test.preparation.BrokenInvariant(test.roster).empty());

  CHECK_FALSE(test.preparation.Made(test.Now(), test.worker(0), PlanMade{"plan", "bytes", "data"}).has_value());
  test.preparation.Advance(test.Now());  // it is being stored
  CHECK(test.TakeCommands<MakePlan>().empty());
  test.preparation.Stored(PlanStored{"plan"}, test.now);
  test.preparation.Advance(test.Now());
  test.preparation.Advance(test.Now());

  CHECK(test.TakeCommands<Prepare>().size() == 2);
  CHECK(test.worker(1).stage == Stage::kPreparing);
}

TEST_CASE("preparation: two that plan at once break the invariant", "[core]") {
  Fresh test;
  for (int index = 0; index < 2; ++index) test.worker(index).stage = Stage::kPlanning;
  CHECK_THAT(test.preparation.BrokenInvariant(test.roster), Contains("both make a kernel plan"));
}

TEST_CASE("preparation: who steps or leaves neither plans nor prepares", "[core]") {
  Fresh test;
  test.worker(0).leaving = true;
  test.worker(1).busy = Generation{1, 1};
  test.preparation.Advance(test.Now());
  CHECK(test.TakeActions().empty());
}

TEST_CASE("preparation: a plan that is none is refused with its maker", "[core]") {
  Fresh test;
  test.preparation.Advance(test.Now());
  const auto refusal = test.preparation.Made(test.Now(), test.worker(0), PlanMade{"", "bytes", "data"});
  REQUIRE(refusal.has_value());
  CHECK(refusal->code == kExitBadJob);
}

TEST_CASE("preparation: a worker is ready once it has the job's plan and the job's data", "[core]") {
  Fresh test("plan");
  const auto prepared = [&](int index, const Ready& ready) {
    return test.preparation.Prepared(test.Now(), test.worker(index), ready, test.pairs);
  };
  CHECK_FALSE(prepared(0, test.ReadyWith("plan")).has_value());
  CHECK(test.worker(0).IsReady());

  CHECK_FALSE(prepared(1, test.ReadyWith("old plan")).has_value());
  CHECK(test.worker(1).stage == Stage::kWelcomed);
  const auto refusal = prepared(1, test.ReadyWith("plan", "other data"));
  REQUIRE(refusal.has_value());
  CHECK(refusal->code == kExitBadData);
}

TEST_CASE("preparation: what a worker kept counts only for a plan that is known", "[core]") {
  Fresh unknown;
  unknown.preparation.Kept(unknown.Now(), unknown.worker(0), unknown.ReadyWith(""), unknown.pairs);
  CHECK_FALSE(unknown.worker(0).IsReady());

  Fresh known("plan");
  known.preparation.Kept(known.Now(), known.worker(0), known.ReadyWith("plan"), known.pairs);
  CHECK(known.worker(0).IsReady());
}

TEST_CASE("preparation: a plan that nobody can run is made anew where nothing lives by it", "[core]") {
  Fresh test("plan");
  test.worker(0).stage = Stage::kPreparing;
  const auto fail = [&](bool may_replan) {
    return test.preparation.Failed(test.Now(), test.worker(0), PrepareFailed{PrepareProblem::kCannotRun, "no AVX"},
                                   may_replan);
  };
  SECTION("nothing does") {
    CHECK_FALSE(fail(true).has_value());
    CHECK_FALSE(test.preparation.plan().known());
  }
  SECTION("something was trained with it") { CHECK(fail(false).has_value()); }
  SECTION("another worker runs it") {
    test.worker(1).stage = Stage::kReady;
    CHECK(fail(true).has_value());
  }
}

TEST_CASE("preparation: pairs that are due are tested, and people hear of those that fail", "[core]") {
  Fresh test("plan");
  for (int index = 0; index < 2; ++index) test.worker(index).stage = Stage::kReady;
  test.worker(0).member.address = "127.0.0.1:5";

  test.preparation.TestConnections(test.Now(), test.pairs);
  CHECK(test.TakeCommands<TestPeers>().size() == 1);
  test.preparation.Tested(test.Now(), test.worker(1), PeersTested{1, {}, {test.Id(0), test.Id(9)}, "refused"},
                          test.pairs);

  const std::vector<Action> said = test.TakeActions();
  REQUIRE(said.size() == 1);
  CHECK_THAT(std::get<Announce>(said[0]).text,
             Contains("worker-1 cannot connect to worker-0") && Contains("--peer-host"));
  CHECK(test.pairs.Apart(test.Id(0), test.Id(1)));
}

}  // namespace
}  // namespace lockstep::chief
