// Between a session and the next one: what a worker says before it is welcomed, and what it says again afterwards.
#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>
#include <vector>

#include "common/protocol/member_list.h"
#include "worker/session/session_core.h"
#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

// Loses the session and says Hello on a new one, which nobody answers yet.
void Greet(WorkerHarness& worker) {
  worker.Give(ChiefDisconnected{"the chief started again", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  REQUIRE(worker.Told<Hello>());
}

void BeWelcomed(WorkerHarness& worker, Term term) {
  worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, term);
}

TEST_CASE("session: workers that lost their chief at one instant try it again at different ones", "[session]") {
  std::vector<int> per_tenth(10, 0);  // how many of 100 workers come back in each tenth of the second
  for (uint64_t i = 0; i < 100; ++i) {
    WorkerHarness worker({i, i * uint64_t{0xD1342543DE82EF95}});
    worker.Give(Tick{});
    worker.Give(ChiefDisconnected{"refused", false});
    size_t tenth = 0;
    for (; tenth < 10 && !worker.Has<Connect>(); ++tenth) worker.Wait(absl::Milliseconds(100));
    REQUIRE(worker.Has<Connect>());
    ++per_tenth[tenth - 1];
  }
  CHECK(std::accumulate(per_tenth.begin(), per_tenth.begin() + 5, 0) == 0);
  CHECK(*std::max_element(per_tenth.begin(), per_tenth.end()) < 40);
}

TEST_CASE("session: an evaluation of any length is told anew in messages that the chief takes", "[session]") {
  WorkerHarness worker;
  worker.policy.eval_every_steps = 11;
  worker.policy.eval_slices = kMaxRepeated + 5;
  worker.Run();
  worker.Finish(11, worker.Word());
  for (uint64_t slice = 0; slice < worker.policy.eval_slices; ++slice) {
    worker.Give(SliceFinished{{3, 1}, 11, worker.Word(), SliceResult{slice, {}}});
  }
  Greet(worker);

  BeWelcomed(worker, 4);

  std::vector<uint64_t> slices;
  for (const Action& action : worker.last) {
    const Send* send = std::get_if<Send>(&action);
    const EvalReport* report = send == nullptr ? nullptr : std::get_if<EvalReport>(&send->message);
    if (report == nullptr) continue;
    CHECK(report->slices.size() <= kMaxRepeated);
    for (const SliceResult& result : report->slices) slices.push_back(result.slice);
  }
  REQUIRE(slices.size() == worker.policy.eval_slices);
  CHECK(slices.front() == 0);
  CHECK(slices.back() == worker.policy.eval_slices - 1);
}

TEST_CASE("session: between Hello and Welcome nothing goes out under a term that may be over", "[session][rule14]") {
  WorkerHarness worker;
  worker.policy.eval_every_steps = 11;
  worker.policy.eval_slices = 1;
  worker.policy.snapshot_every_steps = 11;
  worker.Run();
  worker.Finish(11, worker.Word());
  Greet(worker);
  const auto says_nothing = [&] {
    for (const Action& action : worker.last) CHECK_FALSE(std::holds_alternative<Send>(action));
  };

  worker.Give(SliceFinished{{3, 1}, 11, worker.Word(), SliceResult{0, {.loss = 3}}});
  says_nothing();
  worker.Give(SnapshotDone{{"line", 11, "d11"}});
  says_nothing();
  worker.Give(ShareUploadFailed{{"line", 11, "d11"}, 0, 2, "the chief is away"});
  says_nothing();
  worker.Give(PeersTestedHere{{7, {{0, 101}}, {}, ""}});
  says_nothing();
  worker.Finish(12, worker.Word());
  says_nothing();
  BeWelcomed(worker, 4);

  CHECK(worker.Message<EvalReport>().slices.size() == 1);
  CHECK(worker.Message<SnapshotTaken>().snapshot == SnapshotId{"line", 11, "d11"});
  CHECK(worker.Message<Report>().position == Position{12, 0});
  CHECK(worker.Message<Report>().records.size() == 2);
  for (const Action& action : worker.last) {
    if (const Send* send = std::get_if<Send>(&action)) CHECK(send->fence.term == 4);
  }
}

TEST_CASE("session: what was prepared between Hello and Welcome is told when the chief asks again", "[session]") {
  WorkerHarness worker;
  worker.Join();
  worker.Command(lockstep::Prepare{"graph", "plan", ""});
  Greet(worker);
  CHECK_FALSE(worker.Message<Hello>().ready.has_value());
  worker.Give(Prepared{Ready{"plan", "data", absl::Milliseconds(5), 100}});
  CHECK_FALSE(worker.Told<Ready>());
  BeWelcomed(worker, 4);

  worker.Command(lockstep::Prepare{"graph", "plan", ""}, {}, 4);

  CHECK(worker.Has<PrepareReplica>());
}

TEST_CASE("session: the last words of a process go out before it is welcomed, too", "[session][exit]") {
  WorkerHarness worker;
  worker.Run();
  Greet(worker);

  worker.Give(InternalError{70, "the update failed"});

  CHECK(worker.Message<ErrorReport>().exit_code == 70);
  CHECK(worker.Message<Left>().exit_code == 70);
}

TEST_CASE("session: a process that can do nothing more by no fault of its own leaves, and reports no error",
          "[session][exit]") {
  WorkerHarness worker;
  worker.Run();

  worker.Give(InternalError{75, "a peer took the GPU with it"});

  CHECK_FALSE(worker.Told<ErrorReport>());
  CHECK(worker.Message<Left>().exit_code == 75);
  CHECK(worker.ExitCode() == 75);
}

TEST_CASE("session: a Fenced that crosses with a Hello is answered by that Hello", "[session][rule10]") {
  WorkerHarness worker;
  worker.Join();
  worker.Command(Fenced{"who are you?"});
  REQUIRE(worker.Told<Hello>());

  worker.Command(Fenced{"who are you?"});

  CHECK(worker.last.empty());
  BeWelcomed(worker, 3);
  worker.Command(lockstep::Prepare{"graph", "plan", ""});
  CHECK(worker.Has<PrepareReplica>());
}

TEST_CASE("session: a Welcome that comes before the Hello was said is none", "[session][rule14]") {
  WorkerHarness worker;
  worker.Run();
  worker.Give(ChiefDisconnected{"reset"});
  worker.Give(CollectiveFailed{worker.core.generation(), {}, false, "a peer is gone"});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});
  REQUIRE_FALSE(worker.Told<Hello>());  // computing has not stopped

  BeWelcomed(worker, 3);

  CHECK(worker.Told<CommandRejected>());
  worker.Give(ComputingStopped{worker.core.generation()});
  CHECK(worker.Told<Hello>());
  CHECK_FALSE(worker.ExitCode().has_value());
}

TEST_CASE("session: a session that ends by Fenced gives a full chief_timeout", "[session][rule14]") {
  WorkerHarness worker;
  worker.policy.chief_timeout = absl::Seconds(100);
  worker.Join();
  worker.Wait(absl::Seconds(500));

  worker.Command(Fenced{"who are you?"});
  worker.Wait(absl::Seconds(1));

  CHECK_FALSE(worker.ExitCode().has_value());
}

TEST_CASE("session: a chief that accepts streams and never welcomes does not hold a worker for ever",
          "[session][rule14]") {
  WorkerHarness worker;
  worker.policy.chief_timeout = absl::Seconds(100);
  worker.Join();
  worker.Give(ChiefDisconnected{"gone", false});

  for (int second = 0; second < 120 && !worker.ExitCode().has_value(); ++second) {
    worker.Wait(absl::Seconds(1));
    if (worker.Has<Connect>()) worker.Give(ChiefConnected{});
  }

  CHECK(worker.ExitCode() == 69);
}

TEST_CASE("session: who prepares already is not busy for the same order of a chief that came back", "[session]") {
  WorkerHarness worker;
  worker.Join();
  const bool makes_plan = GENERATE(true, false);
  const ChiefCommand order =
      makes_plan ? ChiefCommand(MakePlan{"graph"}) : ChiefCommand(lockstep::Prepare{"graph", "plan", ""});
  worker.Command(order);
  Greet(worker);
  BeWelcomed(worker, 4);

  worker.Command(order, {}, 4);

  CHECK(worker.last.empty());
  worker.Command(lockstep::Prepare{"graph", "another plan", ""}, {}, 4);
  CHECK(worker.Told<CommandRejected>());
  if (makes_plan) {
    worker.Give(PlanFinished{PlanMade{"plan", "bytes", "data"}});
    CHECK(worker.Told<PlanMade>());
  } else {
    worker.Give(Prepared{Ready{"plan", "data", absl::Milliseconds(5), 100}});
    CHECK(worker.Told<Ready>());
  }
}

// Ticks while nothing comes from the chief.
absl::Duration TimeUntilGivenUp(WorkerHarness& worker) {
  const absl::Time since = worker.now;
  while (!worker.Has<Disconnect>() && worker.now - since < absl::Minutes(1)) worker.Wait(absl::Milliseconds(500));
  return worker.now - since;
}

TEST_CASE("session: a chief that hangs while its stream stays open is given up, and the worker steps on", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.chief_hangs = true;

  const absl::Duration waited = TimeUntilGivenUp(worker);

  CHECK(waited >= SessionCore::kChiefSilence);
  CHECK(waited <= absl::Seconds(10));
  CHECK(worker.Has<Connect>());
  worker.StepTo(20);
  CHECK(worker.core.position().step == 20);
}

TEST_CASE("session: a chief that answers heartbeats, or commands, is kept", "[session]") {
  const bool commands = GENERATE(false, true);
  CAPTURE(commands);
  WorkerHarness worker;
  worker.Run();
  worker.chief_hangs = commands;

  for (int i = 0; i < 100; ++i) {
    worker.Wait(absl::Milliseconds(500));
    CHECK_FALSE(worker.Has<Disconnect>());
    if (commands) worker.Command(SnapshotEnded{{"line", 3, "digest"}, true});
  }
}

TEST_CASE("session: an answer of another term's chief is no life sign", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.chief_term = WorkerHarness::kTerm - 1;

  CHECK(TimeUntilGivenUp(worker) <= absl::Seconds(10));
}

TEST_CASE("session: a worker that was paused listens before it gives its chief up", "[session]") {
  WorkerHarness worker;
  worker.Run();
  worker.chief_hangs = true;
  worker.Wait(absl::Minutes(5));
  CHECK_FALSE(worker.Has<Disconnect>());

  CHECK(TimeUntilGivenUp(worker) >= absl::Seconds(7));
}

TEST_CASE("session: a member of a high rank names its generation's members by their digest alone",
          "[session][rule14]") {
  WorkerHarness worker;
  worker.Join();
  worker.Prepare();
  const uint32_t rank = GENERATE(0, 2, 3, 4);
  CAPTURE(rank);
  worker.FormAt(1, 5, rank, {10, 0});
  std::vector<Member> members;
  for (uint32_t r = 0; r < 5; ++r) members.push_back(Member{{0, r == rank ? WorkerHarness::kSelf : 100 + r}, "", ""});

  worker.Give(ChiefDisconnected{"reset", false});
  worker.Wait(absl::Seconds(2));
  worker.Give(ChiefConnected{});

  const Hello hello = worker.Message<Hello>();
  CHECK(hello.generation == Generation{3, 1});
  CHECK(hello.members.size() == (rank < 3 ? 5 : 0));
  CHECK(hello.members_digest == DigestOfMembers({3, 1}, members));
}

TEST_CASE("session: state is kept for chief_timeout where nothing can be done without a chief", "[session][rule14]") {
  WorkerHarness worker;
  worker.policy.chief_timeout = absl::Seconds(100);
  worker.Run();
  worker.Give(ChiefDisconnected{"gone", false});
  worker.Wait(absl::Seconds(500));
  CHECK_FALSE(worker.ExitCode().has_value());

  worker.Give(CollectiveFailed{{3, 1}, {}, false, "a peer died"});
  worker.Give(ComputingStopped{{3, 1}, false});
  worker.Wait(absl::Seconds(99));
  CHECK_FALSE(worker.ExitCode().has_value());
  CHECK(worker.core.has_state());
  worker.Wait(absl::Seconds(2));

  CHECK(worker.ExitCode() == 69);
}

TEST_CASE("session: a chief that was told to go is waited for no longer than chief_timeout, steps or not",
          "[session][rule14]") {
  WorkerHarness worker;
  worker.policy.chief_timeout = absl::Seconds(100);
  worker.Run();
  worker.Give(ChiefDisconnected{"it was told to go", false, /*handed_over=*/true});
  worker.StepTo(12);
  for (int attempt = 0; attempt < 8; ++attempt) {
    worker.Wait(absl::Seconds(11));
    worker.Give(ChiefDisconnected{"refused", false});
  }
  CHECK_FALSE(worker.ExitCode().has_value());

  SECTION("nobody follows it") {
    worker.Wait(absl::Seconds(11));
    CHECK_FALSE(worker.ExitCode().has_value());
    worker.Wait(absl::Seconds(2));

    CHECK(worker.ExitCode() == 69);
    CHECK(worker.Last<Exit>().reason == "no chief for 1m40s after the last one was told to go");
  }
  SECTION("one follows it, and is killed") {
    worker.Wait(absl::Seconds(2));
    worker.Give(ChiefConnected{});
    worker.Command(Welcome{"job", "worker-0", "line", "graph", worker.policy}, {}, 4);
    worker.Give(ChiefDisconnected{"reset", false});
    worker.Wait(absl::Seconds(500));

    CHECK_FALSE(worker.ExitCode().has_value());
  }
}

}  // namespace
}  // namespace lockstep::worker
