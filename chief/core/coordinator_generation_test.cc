// Forming, boundaries and breaking (rules 1 to 4, 8 to 10 and 12).
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"
#include "common/protocol/recording.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("coordinator: join, form, run, save, and be done", "[core]") {
  ChiefHarness chief({.workers = 3, .end_step = 50});

  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 3);
  CHECK(chief.LastCommand<Form>(1).restore.has_value());

  chief.StepTo(50);

  CHECK(chief.Last<PublishCommit>().snapshot.step == 50);
  CHECK(chief.LastCommand<Done>(2).step == 50);
  CHECK(chief.worker(0).exit_code == 0);
  CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: the record of a run replays to the same actions", "[core]") {
  ChiefHarness chief({.workers = 3, .end_step = 50});
  chief.StepTo(20);
  chief.Kill(1);
  chief.Connect(1);
  chief.MeetAtBoundary();
  chief.StepTo(50);
  REQUIRE(chief.ended());

  const auto replayed = Replay<CoordinatorConfig, Event>(
      chief.record(), [](const CoordinatorConfig& config) { return Coordinator(config); });

  INFO(replayed.status());
  REQUIRE(replayed.ok());
  CHECK(replayed->actions > 30);
}

TEST_CASE("coordinator: a member that rests although nobody ended its generation breaks it", "[core]") {
  ChiefHarness chief({.workers = 2, .min = 2});
  chief.StepTo(41);
  FakeWorker& first = chief.worker(0);
  const Generation left = first.generation;
  first.generation = Generation();

  chief.Say(0, VerdictAck{left, true, first.lineage, first.position, "", {}});

  CHECK_FALSE(chief.ended());
  CHECK_THAT(chief.Said(), Contains("worker-0 left generation") && Contains("which nobody had ended"));
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(first.generation.counter == left.counter + 1);
}

TEST_CASE("coordinator: a reset breaks the generation at once and the survivors go on without rollback", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(41);
  chief.Forget();

  chief.Kill(1);

  CHECK_THAT(chief.LastCommand<Verdict>(0).reason, Contains("worker-1"));
  REQUIRE(chief.phase() == Phase::kRunning);
  const Form form = chief.LastCommand<Form>(2);
  CHECK(form.members.size() == 2);
  CHECK(form.position == Position{41, 0});
  CHECK_FALSE(form.restore.has_value());
  CHECK(form.receivers.empty());
}

TEST_CASE("coordinator: the source is the highest acknowledged position, and who is behind receives", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(41);
  chief.worker(2).position = Position{42, 0};  // applied one more, not yet reported
  chief.Forget();

  chief.Kill(0);

  const Form form = chief.LastCommand<Form>(1);
  CHECK(form.position == Position{42, 0});
  CHECK(form.members[form.source_rank].name == "worker-2");
  REQUIRE(form.receivers.size() == 1);
  CHECK(form.members[form.receivers[0]].name == "worker-1");
}

TEST_CASE("coordinator: a step in a heartbeat or a report decides nothing", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(41);
  // Worker 2 claims step 90 on the heartbeat channel and in a report, but acknowledges 41.
  FakeWorker& liar = chief.worker(2);
  chief.Do(HeartbeatReceived{WorkerFence{"job-1", 1, liar.id}, {Heartbeat::Phase::kComputing, 1, {90, 0}}});
  chief.Say(2, Report{liar.generation, liar.lineage, {90, 0}, {}, {}, {}});
  chief.Forget();

  chief.Kill(0);

  CHECK(chief.LastCommand<Form>(1).position == Position{41, 0});
}

TEST_CASE("coordinator: a peer's collective error breaks the generation and is passed on", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(7);
  chief.Forget();

  chief.Say(1, PeerFailed{chief.worker(1).generation, chief.worker(2).id, false, "connection closed"});

  CHECK_THAT(chief.LastCommand<Verdict>(0).reason, Contains("worker-1 lost worker-2"));
  CHECK(chief.LastCommand<Form>(2).members.size() == 3);
}

TEST_CASE("coordinator: a silent worker breaks the generation and is named", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(41);
  chief.worker(1).beating = false;
  chief.worker(1).mute = true;
  chief.Forget();

  chief.Advance(absl::Seconds(4));
  CHECK(chief.Commands<Verdict>(0).empty());
  chief.Advance(absl::Seconds(2));

  CHECK_THAT(chief.LastCommand<Verdict>(0).reason, Contains("worker-1") && Contains("silent"));
  CHECK(chief.LastCommand<Form>(0).members.size() == 2);
}

TEST_CASE("coordinator: the next generation forms as soon as all have answered, and waits for none beyond its window",
          "[core]") {
  ChiefHarness chief({.workers = 4});
  chief.worker(3).mute = true;
  chief.StepTo(5);
  chief.Forget();

  chief.Kill(0);
  CHECK(chief.phase() == Phase::kBreaking);
  chief.Advance(absl::Milliseconds(500));
  CHECK(chief.phase() == Phase::kBreaking);
  chief.Advance(absl::Milliseconds(600));

  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(chief.LastCommand<Form>(1).members.size() == 2);

  // Its acknowledgement comes late: it joins the generation after, at a boundary.
  FakeWorker& late = chief.worker(3);
  late.mute = false;
  const Generation old = late.generation;
  late.generation = Generation();
  chief.Say(3, VerdictAck{old, true, late.lineage, late.position, ""});
  CHECK(chief.worker(1).requests.count(RequestKind::kForm) == 1);
  chief.MeetAtBoundary();
  CHECK(chief.LastCommand<Form>(3).members.size() == 3);
}

TEST_CASE("coordinator: the window for an acknowledgement includes the plan's longest node", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 3});
  chief.worker(2).ready.longest_node = absl::Seconds(3);
  for (int i = 0; i < 3; ++i) chief.Connect(i);
  REQUIRE(chief.phase() == Phase::kRunning);
  chief.worker(2).mute = true;

  chief.Kill(0);
  chief.Advance(absl::Seconds(3));
  CHECK(chief.phase() == Phase::kBreaking);
  chief.Advance(absl::Seconds(2));

  CHECK(chief.phase() == Phase::kRunning);
}

TEST_CASE("coordinator: a worker that reconnects has its state in hand and joins again", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(9);

  chief.Reset(1);
  REQUIRE(chief.phase() == Phase::kRunning);
  chief.Connect(1);

  CHECK(chief.Commands<Verdict>(1).size() == 1);  // of the generation that it still ran
  chief.MeetAtBoundary();
  const Form form = chief.LastCommand<Form>(1);
  CHECK(form.members.size() == 2);
  CHECK(form.receivers.empty());
}

TEST_CASE("coordinator: nothing is restored while a worker that may hold more has not answered", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(9);
  FakeWorker& slow = chief.worker(0);
  slow.mute = true;
  chief.Kill(1);
  chief.Reset(0);
  chief.Connect(0);
  chief.Connect(1);  // holds nothing
  chief.Advance(absl::Seconds(60));
  CHECK(chief.Commands<Form>(1).empty());

  const Generation old = std::exchange(slow.generation, Generation());
  slow.mute = false;
  chief.Say(0, VerdictAck{old, true, slow.lineage, slow.position, ""});

  CHECK(chief.LastCommand<Form>(1).position == Position{9, 0});
}

TEST_CASE("coordinator: state of another lineage is never a source", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(9);
  FakeWorker& sleeper = chief.worker(2);
  sleeper.has_state = true;
  sleeper.lineage = "lineage-0";
  sleeper.position = Position{500, 0};

  chief.Connect(2);
  chief.MeetAtBoundary();

  const Form form = chief.LastCommand<Form>(2);
  CHECK(form.position == Position{9, 0});
  CHECK(form.receivers == std::vector<uint32_t>{2});
}

TEST_CASE("coordinator: a newcomer joins at a boundary that is asked for by number, never named", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(5);

  chief.Connect(2);
  REQUIRE(chief.worker(0).requests.count(RequestKind::kForm) == 1);
  const uint64_t first = chief.worker(0).requests[RequestKind::kForm];
  CHECK(first == chief.worker(1).requests[RequestKind::kForm]);
  CHECK(chief.phase() == Phase::kRunning);
  chief.StepTo(6);
  chief.MeetAtBoundary();

  CHECK(chief.LastCommand<Form>(2).position == Position{6, 0});
  CHECK(chief.LastCommand<Form>(2).receivers == std::vector<uint32_t>{2});
  CHECK(chief.Commands<Verdict>(0).empty());
  chief.Connect(3);
  CHECK(chief.worker(0).requests[RequestKind::kForm] > first);
}

TEST_CASE("coordinator: numbers of requests grow over terms as well", "[core]") {
  ChiefHarness first({.workers = 2, .term = 3});
  ChiefHarness second({.workers = 2, .term = 4});
  for (ChiefHarness* chief : {&first, &second}) {
    chief->Advance(absl::Seconds(6));
    chief->Connect(2);
  }

  REQUIRE(first.worker(0).requests.count(RequestKind::kForm) == 1);
  CHECK(second.worker(0).requests[RequestKind::kForm] > first.worker(0).requests[RequestKind::kForm]);
}

TEST_CASE("coordinator: a request that was not served before a break is made again", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.Do(StopRequested{"test"});
  REQUIRE(chief.worker(0).requests.count(RequestKind::kStop) == 1);
  // Worker 1 alone lacks the last step; it is lost, and the others, which hold nothing new, form again or save.
  ChiefHarness other({.workers = 2});
  other.Connect(2);
  REQUIRE(other.worker(0).requests.count(RequestKind::kForm) == 1);
  other.worker(2).unreachable = {"worker-1"};
  other.Kill(1);
  REQUIRE(other.phase() == Phase::kRunning);
  other.Connect(3);

  CHECK(other.worker(0).requests.count(RequestKind::kForm) == 1);
}

TEST_CASE("coordinator: who does not come to the boundary in time is judged", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.worker(0).leaving = true;
  chief.worker(2).mute = true;
  chief.StepTo(5);
  chief.ComeToBoundary(0);
  chief.ComeToBoundary(1);
  CHECK(chief.phase() == Phase::kBreaking);
  chief.Forget();

  chief.Advance(absl::Seconds(3));

  CHECK(chief.Commands<Verdict>(2).size() == 1);
  CHECK(chief.LastCommand<Form>(1).members.size() == 1);
}

TEST_CASE("coordinator: a member lost on the way to a boundary is not waited for", "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  chief.ComeToBoundary(0);
  chief.Forget();

  chief.Kill(1);

  CHECK(chief.Commands<Verdict>(2).size() == 1);
  CHECK(chief.LastCommand<Form>(2).members.size() == 2);
}

TEST_CASE("coordinator: messages that do not fit the session are answered, not only dropped", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.Forget();
  FakeWorker& w = chief.worker(1);

  chief.Do(FromWorker{w.session, WorkerFence{"job-1", 99, w.id}, LeaveIntent{absl::Seconds(1)}});
  CHECK_THAT(chief.LastCommand<Fenced>(1).reason, Contains("term 99"));
  chief.Do(FromWorker{w.session, WorkerFence{"job-2", 1, w.id}, LeaveIntent{absl::Seconds(1)}});
  CHECK_THAT(chief.LastCommand<Fenced>(1).reason, Contains("job-2"));
  chief.Do(FromWorker{w.session, WorkerFence{"job-1", 1, chief.worker(0).id}, LeaveIntent{absl::Seconds(1)}});
  CHECK_THAT(chief.LastCommand<Fenced>(1).reason, Contains("another process"));
  chief.Do(FromWorker{77, WorkerFence{"job-1", 1, w.id}, LeaveIntent{absl::Seconds(1)}});
  CHECK(chief.Last<Send>().session == 77);
  CHECK_FALSE(chief.View().workers[1].state == "leaving");
}

TEST_CASE("coordinator: what a member says of another generation is answered with a verdict, and counts for nothing",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(4);
  FakeWorker& w = chief.worker(1);
  chief.worker(1).mute = true;
  chief.Reset(1);  // generation 2 has worker 0 alone
  chief.Connect(1);
  w.mute = false;
  chief.Forget();

  chief.Say(1, PeerFailed{Generation{1, 1}, chief.worker(0).id, false, "an old story"});
  chief.Say(1, StoreSet{Generation{1, 1}, "key", "value"});

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.Commands<Verdict>(0).empty());
  CHECK(chief.Commands<StorePush>(0).empty());
}

TEST_CASE("coordinator: the store of a generation reaches its other members only", "[core]") {
  ChiefHarness chief({.workers = 2, .logical_shards = 2});
  chief.Connect(2);  // spare
  chief.Forget();

  chief.Say(0, StoreSet{chief.worker(0).generation, "rank/0", "address"});

  CHECK(chief.LastCommand<StorePush>(1).value == "address");
  CHECK(chief.Commands<StorePush>(0).empty());
  CHECK(chief.Commands<StorePush>(2).empty());
}

TEST_CASE("coordinator: workers beyond the logical shards are spare, count for the minimum, and step in", "[core]") {
  ChiefHarness chief({.workers = 3, .min = 3, .logical_shards = 2});
  REQUIRE(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).members.size() == 2);
  CHECK(chief.Commands<Form>(2).empty());
  CHECK(chief.worker(0).requests.count(RequestKind::kForm) == 0);

  chief.StepTo(8);
  chief.Kill(0);
  CHECK(chief.phase() == Phase::kWaiting);  // two are left of at least three
  chief.Connect(0);

  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.LastCommand<Form>(2).position == Position{8, 0});
}

TEST_CASE("coordinator: acknowledgements that lie in the queue behind a beat are heard before the window ends",
          "[core]") {
  ChiefHarness chief({.workers = 3});
  chief.StepTo(5);
  chief.worker(0).mute = chief.worker(1).mute = true;
  const Generation generation = chief.worker(0).generation;
  chief.Kill(2);
  REQUIRE(chief.phase() == Phase::kBreaking);

  chief.Pause(absl::Milliseconds(1200));  // beyond the window; the answers came meanwhile
  const FakeWorker& first = chief.worker(0);
  chief.Do(HeartbeatReceived{WorkerFence{"job-1", first.term, first.id}, {first.phase, 1, first.position}});
  chief.worker(0).mute = chief.worker(1).mute = false;
  for (int i : {0, 1}) {
    chief.worker(i).generation = Generation();
    chief.Say(i, VerdictAck{generation, true, "lineage-1", Position{5, 0}, ""});
  }

  CHECK_THAT(chief.Said(), !Contains("did not acknowledge"));
  CHECK(chief.LastCommand<Form>(0).members.size() == 2);
}

}  // namespace
}  // namespace lockstep::chief
