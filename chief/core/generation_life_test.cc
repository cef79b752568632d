#include "chief/core/generation_life.h"

#include <catch2/catch.hpp>
#include <random>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

// The chief of term 2, which has an hour of messages behind it, and three workers.
struct Life : CoreFixture {
  explicit Life(int workers = 3) {
    policy.heartbeat_limit = absl::Seconds(5);
    policy.ack_limit = absl::Seconds(1);
    life.Begin(now, term, policy);
    for (int index = 0; index < workers; ++index) Add(index);
  }

  void FirstPhaseOver() {
    life.AdvanceAdopting(TickAfter(absl::Seconds(5)), "lineage");
    life.AdvanceBreaking(Now(), 0);
    REQUIRE(life.Is(Phase::kWaiting));
  }
  std::vector<Worker*> FormOf(const std::vector<int>& indexes, uint64_t step = 10, bool restores = false) {
    lockstep::Form form;
    form.position = {step, 0};
    if (restores) form.restore = SnapshotId{"lineage", step, ""};
    std::vector<Worker*> members;
    for (int index : indexes) members.push_back(&worker(index));
    return life.SendForm(Now(), form, members, step);
  }
  // A generation of these steps.
  void RunOf(const std::vector<int>& indexes, uint64_t step = 10) {
    FormOf(indexes, step);
    for (int index : indexes) REQUIRE(life.Formed(worker(index), {step, 0}).empty());
    REQUIRE(life.AdvanceForming(Now()));
    progress.Begin("lineage", {});
    TakeActions();
  }
  void RestOf(int index, uint64_t step) {
    const Generation last = worker(index).busy;
    life.Rest(worker(index), last, HeldState{"lineage", {step, 0}, ""});
  }
  void Lose(int index) {
    const bool member = life.IsMember(worker(index));
    const std::string name = worker(index).name();
    Remove(index);
    life.Forget(Id(index), name, now);
    if (member) life.MemberLost(Now(), name, "lost", progress);
  }
  Hello HelloOf(const Generation& generation, const std::vector<int>& members, uint64_t step) {
    Hello hello;
    hello.has_state = true;
    hello.lineage = "lineage";
    hello.position = {step, 0};
    hello.activity = Activity::kRunning;
    hello.generation = generation;
    for (int index : members) hello.members.push_back(Member{Id(index), absl::StrCat("worker-", index), ""});
    return hello;
  }
  void SayHello(int index, const Generation& generation, const std::vector<int>& members, uint64_t step) {
    life.TakeIn(Now(), worker(index), HelloOf(generation, members, step), progress);
  }

  GenerationLife life;
  ProgressTracker progress{"lineage", 10, 0, 0};
};

TEST_CASE("generation life: formed, synchronised, running", "[core]") {
  Life life;
  life.FirstPhaseOver();

  const std::vector<Worker*> first = life.FormOf({0, 1});

  CHECK(first.size() == 2);
  CHECK(life.life.Is(Phase::kForming));
  CHECK(life.life.current().id == Generation{2, 1});
  CHECK(life.TakeCommands<lockstep::Form>().size() == 2);
  CHECK(life.life.Formed(life.worker(0), {10, 0}).empty());
  CHECK_FALSE(life.life.AdvanceForming(life.Now()));
  CHECK(life.life.Formed(life.worker(1), {10, 0}).empty());
  CHECK(life.life.AdvanceForming(life.Now()));
  CHECK(life.life.Is(Phase::kRunning));
}

TEST_CASE("generation life: a member that stands elsewhere breaks what forms", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.FormOf({0, 1});
  CHECK_THAT(life.life.Formed(life.worker(1), {9, 0}), Contains("worker-1 stands at step 9 instead of step 10"));
}

TEST_CASE("generation life: a break waits for all acknowledgements, then nobody steps", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1, 2});

  life.life.Break(life.Now(), "worker-0 lost worker-1", 12);
  life.life.Break(life.Now(), "worker-1 lost worker-0", 12);

  CHECK(life.TakeCommands<Verdict>().size() == 3);  // one for each
  life.RestOf(0, 12);
  life.RestOf(1, 12);
  CHECK_FALSE(life.life.AdvanceBreaking(life.Now(), 12).has_value());
  life.RestOf(2, 12);
  CHECK(life.life.AdvanceBreaking(life.Now(), 12).has_value());
  CHECK(life.life.Is(Phase::kWaiting));
  CHECK(life.life.IsOver(Generation{2, 1}));
}

TEST_CASE("generation life: who acknowledges nothing is waited for until its window ends, in ticks alone", "[core]") {
  Life life;
  life.worker(1).ready.longest_node = absl::Seconds(2);
  life.FirstPhaseOver();
  life.RunOf({0, 1});
  life.life.Break(life.Now(), "evidence", 12);
  life.RestOf(0, 12);

  CHECK_FALSE(life.life.AdvanceBreaking(life.TickAfter(absl::Seconds(2)), 12).has_value());
  life.now += absl::Seconds(1);
  CHECK_FALSE(life.life.AdvanceBreaking(life.Now(), 12).has_value());
  CHECK(life.life.AdvanceBreaking(life.TickAfter(absl::ZeroDuration()), 12).has_value());
}

TEST_CASE("generation life: members that do not come to a boundary are told to end", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1});
  CHECK(life.life.MeetAt(life.Now(), {12, 0}));
  CHECK_FALSE(life.life.MeetAt(life.Now(), {12, 0}));
  life.RestOf(0, 12);
  CHECK(life.TakeCommands<Verdict>().empty());

  CHECK_FALSE(life.life.AdvanceBreaking(life.TickAfter(absl::Seconds(1)), 12).has_value());

  CHECK(life.TakeCommands<Verdict>().size() == 1);
  life.RestOf(1, 12);
  CHECK(life.life.AdvanceBreaking(life.Now(), 12).has_value());
}

TEST_CASE("generation life: a worker that speaks of another generation hears that it is over", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1});
  life.worker(2).busy = Generation{1, 9};

  CHECK(life.life.InCurrent(life.Now(), life.worker(0), Generation{2, 1}));
  CHECK_FALSE(life.life.InCurrent(life.Now(), life.worker(0), Generation{1, 9}));  // crossed: says nothing
  CHECK(life.TakeCommands<Verdict>().empty());
  CHECK_FALSE(life.life.InCurrent(life.Now(), life.worker(2), Generation{1, 9}));
  CHECK(life.TakeCommands<Verdict>().size() == 1);
}

TEST_CASE("generation life: a restarted chief adopts a generation whose members are all here", "[core]") {
  Life life(1);
  life.SayHello(0, {1, 7}, {0, 1}, 40);
  CHECK_FALSE(life.life.AdvanceAdopting(life.Now(), "lineage").has_value());

  life.Add(1);
  life.SayHello(1, {1, 7}, {0, 1}, 41);
  const auto adoption = life.life.AdvanceAdopting(life.Now(), "lineage");

  REQUIRE(adoption.has_value());
  CHECK(adoption->positions.at(life.Id(0)) == Position{40, 0});
  CHECK(life.life.Is(Phase::kRunning));
  CHECK(life.life.current().id == Generation{1, 7});
  CHECK(life.life.current().begin == Position{41, 0});
  CHECK(life.TakeCommands<Verdict>().empty());
}

TEST_CASE("generation life: who runs another generation than the adopted one is told", "[core]") {
  Life life(3);
  life.SayHello(2, {1, 6}, {2}, 30);
  life.worker(2).claims.reset();
  for (int index : {0, 1}) life.SayHello(index, {1, 7}, {0, 1}, 40);

  REQUIRE(life.life.AdvanceAdopting(life.Now(), "lineage").has_value());

  CHECK(life.worker(2).verdict_sent);
  CHECK_FALSE(life.worker(0).verdict_sent);
}

TEST_CASE("generation life: without all members the claims end when time does", "[core]") {
  Life life(1);
  life.SayHello(0, {1, 7}, {0, 1}, 40);
  CHECK(life.life.deadline() == life.now + absl::Seconds(5));

  life.life.AdvanceAdopting(life.TickAfter(absl::Seconds(5)), "lineage");

  CHECK(life.life.Is(Phase::kBreaking));
  CHECK(life.worker(0).verdict_sent);
}

TEST_CASE("generation life: a generation that a member left is adopted by nobody", "[core]") {
  Life life(2);
  life.life.GiveUp(Generation{1, 7});  // it acknowledged the end, in the same burst
  for (int index : {0, 1}) life.SayHello(index, {1, 7}, {0, 1}, 40);

  CHECK_FALSE(life.life.AdvanceAdopting(life.Now(), "lineage").has_value());

  CHECK(life.worker(0).verdict_sent);
  CHECK(life.worker(1).verdict_sent);
  CHECK_FALSE(life.life.IsParted(Generation{1, 7}));  // what they hold counts all the same
}

TEST_CASE("generation life: a lost member breaks the generation, unless this chief itself was away", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1, 2});

  SECTION("it breaks") {
    life.Lose(1);
    CHECK(life.life.Is(Phase::kBreaking));
    CHECK(life.life.WasBrokenBy("worker-1"));
    CHECK_FALSE(life.life.WasBrokenBy("worker-1"));  // told once
  }
  SECTION("the chief was paused: it listens, and adopts when the member is back") {
    life.now += absl::Seconds(8);
    life.life.WasAway(absl::Seconds(8), life.now, life.policy);
    life.Lose(1);
    CHECK(life.life.Is(Phase::kAdopting));
    CHECK(life.TakeCommands<Verdict>().empty());

    life.Add(1);
    life.SayHello(1, {2, 1}, {0, 1, 2}, 14);

    CHECK(life.life.AdvanceAdopting(life.Now(), "lineage").has_value());
    CHECK(life.life.Is(Phase::kRunning));
  }
  SECTION("nobody was heard for long: this chief is cut off") {
    life.now += absl::Seconds(3);
    life.life.NoteSilence(life.Now());
    life.Lose(1);
    CHECK(life.life.Is(Phase::kAdopting));
  }
  SECTION("one member was heard: the others are silent") {
    life.now += absl::Seconds(3);
    life.worker(2).heard = life.now;
    life.life.NoteSilence(life.Now());
    life.Lose(1);
    CHECK(life.life.Is(Phase::kBreaking));
  }
}

TEST_CASE("generation life: all sessions are gone, and a member that steps on comes back", "[core]") {
  Life life(2);
  life.FirstPhaseOver();
  life.RunOf({0, 1});
  life.Lose(0);
  life.Lose(1);
  life.life.AdvanceBreaking(life.Now(), 12);
  REQUIRE(life.life.Is(Phase::kWaiting));

  life.Add(0);
  life.SayHello(0, {2, 1}, {0, 1}, 13);

  // Verdicts went to those that were here when it broke: the generation is over.
  CHECK(life.worker(0).verdict_sent);
  CHECK(life.life.Is(Phase::kWaiting));
}

TEST_CASE("generation life: a member that lacks its peers at the last step breaks nothing", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1});
  life.life.Finished(life.worker(0), {2, 1}, 100);
  CHECK(life.life.Accuse(life.Now(), life.worker(0), PeerFailed{{2, 1}, life.Id(1), false, "closed", false}).empty());

  CHECK(life.life.Is(Phase::kFinishing));
  CHECK(life.worker(0).verdict_sent);
}

TEST_CASE("generation life: accusations are weighed when all are at rest", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.FormOf({0, 1});
  const std::string why =
      life.life.Accuse(life.Now(), life.worker(0), PeerFailed{{2, 1}, life.Id(1), true, "refused", false});
  CHECK_THAT(why, Contains("worker-0 lost worker-1: refused"));
  life.life.Break(life.Now(), why, 10);
  life.RestOf(0, 10);
  life.RestOf(1, 10);

  const auto finding = life.life.AdvanceBreaking(life.Now(), 10);

  REQUIRE(finding.has_value());
  REQUIRE(finding->suspicions.size() == 1);
  CHECK(finding->suspicions[0].while_forming);
  CHECK_THAT(life.life.backoff().cause(), Contains("worker-0 lost worker-1"));
}

TEST_CASE("generation life: restores that fail while all live are counted, a loss counts for nothing", "[core]") {
  Life life;
  life.FirstPhaseOver();
  const auto fail = [&](bool one_dies) {
    life.FormOf({0, 1}, 10, /*restores=*/true);
    PeerFailed damaged{life.life.current().id, {}, false, "digest", true};
    life.life.Break(life.Now(), life.life.Accuse(life.Now(), life.worker(0), damaged), 10);
    if (one_dies) life.Lose(1);
    for (Worker* worker : life.All()) life.life.Rest(*worker, worker->busy, std::nullopt);
    life.life.AdvanceBreaking(life.Now(), 10);
    const auto failed = life.life.CountFailedRestore(life.roster);
    if (one_dies) life.Add(1);
    return failed;
  };

  CHECK_FALSE(fail(false).has_value());
  CHECK_FALSE(fail(false).has_value());
  CHECK_FALSE(fail(true).has_value());
  const auto failed = fail(false);
  REQUIRE(failed.has_value());
  CHECK(failed->in_a_row == GenerationLife::kFailedRestoresBeforeEnd);
  CHECK(failed->failure == "worker-0: digest");
}

TEST_CASE("generation life: a request goes out once, again when served, with rising numbers", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1});

  life.life.Request(life.Now(), RequestKind::kSnapshot, "due");
  life.life.Request(life.Now(), RequestKind::kSnapshot, "due");
  const auto first = life.TakeCommands<BoundaryRequest>();
  life.life.RequestServed(RequestKind::kSnapshot);
  life.life.Request(life.Now(), RequestKind::kSnapshot, "due");
  const auto second = life.TakeCommands<BoundaryRequest>();

  REQUIRE(first.size() == 2);  // one for each member
  REQUIRE(second.size() == 2);
  CHECK(first[0].number == first[1].number);
  CHECK(first[0].number >> 32 == life.term);
  CHECK(second[0].number > first[0].number);
}

TEST_CASE("generation life: the store's values go to the other members, unless they are too long", "[core]") {
  Life life;
  life.FirstPhaseOver();
  life.RunOf({0, 1});
  CHECK(life.life.Relay(life.Now(), life.worker(0), StoreSet{{2, 1}, "key", "value"}).empty());
  CHECK(life.TakeCommands<StorePush>().size() == 1);

  StoreSet large{{2, 1}, "key", std::string(kMaxStoreValueBytes + 1, 'x')};
  CHECK_THAT(life.life.Relay(life.Now(), life.worker(0), large), Contains("are accepted"));
  CHECK(life.TakeCommands<StorePush>().empty());
}

TEST_CASE("generation life: whatever happens in whatever order, its invariants hold", "[core]") {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    Life life(4);
    for (int round = 0; round < 60; ++round) {
      const int index = static_cast<int>(random() % 4);
      Worker* worker = life.roster.Find(life.Id(index));
      switch (random() % 10) {
        case 0:
          if (worker != nullptr) life.Lose(index);
          break;
        case 1:
          if (worker == nullptr) life.SayHello((life.Add(index), index), {1 + random() % 2, random() % 3}, {0, 1}, 20);
          break;
        case 2:
          life.life.Break(life.Now(), "evidence", 10);
          break;
        case 3:
          if (life.life.Is(Phase::kRunning) || life.life.Is(Phase::kForming)) life.life.MeetAt(life.Now(), {10, 0});
          break;
        case 4:
          if (worker != nullptr && !worker->AtRest() && worker->verdict_sent) life.RestOf(index, 10);
          break;
        case 5:
          if (worker != nullptr && life.life.IsMember(*worker)) life.life.Formed(*worker, life.life.current().begin);
          break;
        case 6:
          if (life.life.Is(Phase::kRunning)) life.life.EnterFinishing(30);
          break;
        default:
          const CoreContext tick = life.TickAfter(absl::Milliseconds(random() % 4000));
          if (life.life.Is(Phase::kAdopting)) life.life.AdvanceAdopting(tick, "lineage");
          if (life.life.Is(Phase::kBreaking)) life.life.AdvanceBreaking(tick, 10);
          if (life.life.Is(Phase::kForming)) life.life.AdvanceForming(tick);
          std::vector<int> here;
          for (int i = 0; i < 4; ++i) {
            const Worker* other = life.roster.Find(life.Id(i));
            if (other != nullptr && other->AtRest()) here.push_back(i);
          }
          if (life.life.Is(Phase::kWaiting) && !here.empty()) life.FormOf(here);
      }
      INFO("seed " << seed << ", round " << round);
      REQUIRE(life.life.BrokenInvariant().empty());
    }
  }
}

}  // namespace
}  // namespace lockstep::chief
