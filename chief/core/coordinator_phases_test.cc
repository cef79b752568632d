// Workers that leave, by SIGTERM or by a drain, in every phase of the chief: one, several, all. Whoever leaves goes,
// those that stay go on from the newest step that anybody held, and where nobody stays that step is published.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kStep = 10;
constexpr uint64_t kEnd = 50;

struct Case {
  std::vector<int> leavers;
  bool drained = false;
  std::vector<int> stayers() const {
    std::vector<int> list;
    for (int i : {0, 1, 2}) {
      if (std::find(leavers.begin(), leavers.end(), i) == leavers.end()) list.push_back(i);
    }
    return list;
  }
};

Case EachCase() {
  return Case{GENERATE(as<std::vector<int>>(), std::vector<int>{0}, std::vector<int>{2}, std::vector<int>{0, 1},
                       std::vector<int>{0, 1, 2}),
              GENERATE(false, true)};
}

void Leave(ChiefHarness& chief, const Case& c) {
  if (c.drained) {
    DrainRequested request{1, {}, false, absl::InfiniteDuration(), "a test"};
    for (int i : c.leavers) request.targets.push_back(absl::StrCat("worker-", i));
    return chief.Do(request);
  }
  for (int i : c.leavers) {
    chief.worker(i).leaving = true;
    if (chief.worker(i).connected) chief.Say(i, LeaveIntent{absl::Seconds(25)});
  }
}

// Time passes, and members that are asked to meet, or of which one leaves, meet.
void LetGoOn(ChiefHarness& chief) {
  for (int round = 0; round < 20 && !chief.ended(); ++round) {
    const std::vector<int> members = chief.Members();
    const bool meet = std::any_of(members.begin(), members.end(), [&](int i) {
      return chief.worker(i).leaving || chief.worker(i).requests.count(RequestKind::kForm) != 0;
    });
    if (meet && chief.phase() == Phase::kRunning) chief.MeetAtBoundary();
    chief.Advance(absl::Seconds(1));
  }
}

void CheckAllWentWell(ChiefHarness& chief, const Case& c, uint64_t newest) {
  CAPTURE(c.leavers, c.drained, chief.Said());
  CHECK_FALSE(chief.rejected);
  for (int i : c.leavers) CHECK(chief.worker(i).exit_code == 75);
  for (int i : c.stayers()) {
    CHECK(chief.worker(i).exit_code == -1);
    CHECK(chief.LastCommand<Form>(i).position.step == newest);
    CHECK_FALSE(chief.LastCommand<Form>(i).restore.has_value());
  }
  CHECK(chief.Members() == c.stayers());
  if (c.stayers().empty()) CHECK(chief.View().published_step == newest);
  CHECK(chief.View().failures == 0);
  CHECK(chief.View().losses == 0);
  CHECK(chief.View().preemptions == c.leavers.size());
}

TEST_CASE("coordinator: who leaves while members step", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.workers = 3, .end_step = kEnd});
  chief.StepTo(kStep);

  Leave(chief, c);
  LetGoOn(chief);

  CheckAllWentWell(chief, c, kStep);
}

TEST_CASE("coordinator: who leaves while a generation forms", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.workers = 3, .end_step = kEnd});
  chief.StepTo(kStep);
  chief.on_form = [](int index) { return index == 1; };
  chief.MeetAtBoundary();
  REQUIRE(chief.phase() == Phase::kForming);

  Leave(chief, c);
  REQUIRE(chief.phase() == Phase::kForming);
  chief.on_form = nullptr;
  chief.Say(1, Formed{chief.worker(1).generation, chief.worker(1).position, ""});
  LetGoOn(chief);

  CheckAllWentWell(chief, c, kStep);
}

TEST_CASE("coordinator: who leaves while a generation breaks", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.workers = 3, .end_step = kEnd});
  chief.StepTo(kStep);
  chief.worker(1).mute = true;
  const Generation broken = chief.worker(1).generation;
  chief.Say(0, PeerFailed{broken, {}, false, "a collective failed"});
  REQUIRE(chief.phase() == Phase::kBreaking);

  Leave(chief, c);
  REQUIRE(chief.phase() == Phase::kBreaking);
  FakeWorker& late = chief.worker(1);
  late.mute = false;
  late.position = Position{kStep + 1, 0};  // its update had begun
  late.generation = Generation();
  chief.Say(1, VerdictAck{broken, true, late.lineage, late.position, ""});
  LetGoOn(chief);

  CheckAllWentWell(chief, c, kStep + 1);
}

TEST_CASE("coordinator: who leaves while workers wait for more of them", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.workers = 4, .min = 4, .end_step = kEnd});
  chief.StepTo(kStep);
  chief.Kill(3);
  REQUIRE(chief.phase() == Phase::kWaiting);

  Leave(chief, c);
  LetGoOn(chief);

  CAPTURE(c.leavers, c.drained, chief.Said());
  for (int i : c.leavers) CHECK(chief.worker(i).exit_code == 75);
  for (int i : c.stayers()) CHECK(chief.worker(i).exit_code == -1);
  if (c.stayers().empty()) CHECK(chief.View().published_step == kStep);
  CHECK(chief.View().preemptions == c.leavers.size());
}

TEST_CASE("coordinator: who leaves before anything was trained", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.workers = 3, .min = 4, .end_step = kEnd});
  REQUIRE(chief.phase() == Phase::kWaiting);

  Leave(chief, c);
  LetGoOn(chief);

  for (int i : c.leavers) CHECK(chief.worker(i).exit_code == 75);
  for (int i : c.stayers()) CHECK(chief.worker(i).exit_code == -1);
  CHECK(chief.Count<OpenSave>() == 0);
}

// Three workers that run a generation of term 1.
void RunHalfUnderOldChief(ChiefHarness& chief) {
  std::vector<Member> members;
  for (int i : {0, 1, 2}) {
    FakeWorker& w = chief.worker(i);
    members.push_back(Member{w.id, w.hello.preferred_name, w.hello.peer_address});
    w.has_state = true;
    w.lineage = "lineage-1";
    w.position = Position{kStep, 0};
    w.generation = Generation{1, 4};
    w.term = 1;
  }
  for (int i : {0, 1, 2}) chief.worker(i).members = members;
}

TEST_CASE("coordinator: who leaves while a restarted chief listens for the generation that runs", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.end_step = kEnd, .term = 2, .plan = "plan-1"});
  RunHalfUnderOldChief(chief);
  chief.Connect(0);
  chief.Connect(1);
  REQUIRE(chief.phase() == Phase::kAdopting);

  SECTION("which is complete in the end") {
    if (!c.drained) Leave(chief, c);
    chief.Connect(2);
    if (c.drained) Leave(chief, c);  // it knows no name before
    LetGoOn(chief);
    CheckAllWentWell(chief, c, kStep);
  }
  SECTION("of which a member does not come back") {
    if (c.drained || c.leavers == std::vector<int>{2}) return;
    Leave(chief, c);
    LetGoOn(chief);
    CAPTURE(c.leavers, chief.Said());
    for (int i : c.leavers) {
      if (i != 2) CHECK(chief.worker(i).exit_code == 75);
    }
    if (c.leavers.size() > 1) CHECK(chief.View().published_step == kStep);
    if (c.leavers.size() == 1) CHECK(chief.LastCommand<Form>(1).position.step == kStep);
  }
}

TEST_CASE("coordinator: who leaves while the last state is saved", "[core]") {
  const Case c = EachCase();
  ChiefHarness chief({.workers = 3, .end_step = kEnd});
  chief.storing = false;
  chief.StepTo(kEnd);
  REQUIRE(chief.phase() == Phase::kFinishing);

  Leave(chief, c);
  chief.Advance(absl::Seconds(1));
  CAPTURE(c.leavers, c.drained, chief.Said());
  // Somebody keeps the last state until it is published.
  const auto went =
      std::count_if(c.leavers.begin(), c.leavers.end(), [&](int i) { return chief.worker(i).exit_code == 75; });
  if (c.stayers().empty()) CHECK(went < 3);
  if (!c.stayers().empty()) CHECK(went == static_cast<std::ptrdiff_t>(c.leavers.size()));
  chief.storing = true;
  chief.Do(ManifestStored{chief.Last<StoreManifest>().snapshot, chief.Last<StoreManifest>().snapshot.digest});

  for (int i : c.stayers()) CHECK(chief.worker(i).exit_code == 0);
  CHECK(chief.View().published_step == kEnd);
  CHECK(chief.Last<Exit>().code == 0);
}

// ---- what a short grace asks for

TEST_CASE("coordinator: of leavers at several steps the newest is saved, and settles the others", "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = kEnd});
  chief.StepTo(kStep);
  chief.worker(1).position = Position{kStep + 1, 0};
  chief.Say(0, PeerFailed{chief.worker(0).generation, {}, false, "a collective failed"});
  chief.MeetAtBoundary();
  for (int i : {0, 1}) {
    chief.worker(i).leaving = true;
    chief.Say(i, LeaveIntent{absl::Seconds(25)});
  }
  LetGoOn(chief);

  CHECK(chief.View().published_step == kStep + 1);
  CHECK(chief.Count<StoreManifest>() == 1);
  CHECK(chief.worker(0).exit_code == 75);
  CHECK(chief.worker(1).exit_code == 75);
}

// A worker that comes back to a chief of term 2 and holds `step`, outside of a generation.
void HoldState(FakeWorker& w, uint64_t step) {
  w.has_state = true;
  w.lineage = "lineage-1";
  w.position = Position{step, 0};
}

TEST_CASE("coordinator: of leavers at several steps the older is saved when the newest is lost", "[core]") {
  ChiefHarness chief({.min = 3, .end_step = kEnd, .term = 2, .plan = "plan-1"});
  for (int i : {0, 1}) {
    HoldState(chief.worker(i), kStep + static_cast<uint64_t>(i));
    chief.worker(i).leaving = true;
    chief.worker(i).keeps_shares = i == 1;
    chief.Connect(i);
  }
  chief.Advance(absl::Seconds(6));
  REQUIRE(chief.Count<OpenSave>() == 1);
  REQUIRE(chief.Last<OpenSave>().snapshot.step == kStep + 1);

  chief.Kill(1);
  chief.Advance(absl::Seconds(2));

  CHECK(chief.View().published_step == kStep);
  CHECK(chief.worker(0).exit_code == 75);
}

TEST_CASE("coordinator: a leaver whose replica is being built anew is asked for its state behind that", "[core]") {
  ChiefHarness chief({.min = 2, .end_step = kEnd, .term = 2, .plan = "plan-1"});
  FakeWorker& w = chief.worker(0);
  HoldState(w, kStep);
  w.ready.settings = "of another job file";
  w.mute = true;
  chief.Connect(0);
  chief.Advance(absl::Seconds(6));
  REQUIRE(chief.Commands<lockstep::Prepare>(0).size() == 1);

  w.leaving = true;
  chief.Say(0, LeaveIntent{absl::Seconds(25)});
  CHECK(chief.Commands<TakeSnapshot>(0).empty());
  w.mute = false;
  w.ready.settings = "";
  chief.Say(0, w.ready);

  CHECK(chief.View().published_step == kStep);
  CHECK(w.exit_code == 75);
}

}  // namespace
}  // namespace lockstep::chief
