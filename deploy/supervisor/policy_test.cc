#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "deploy/supervisor/policy_harness.h"

namespace lockstep::supervisor {
namespace {

TEST_CASE("supervisor: a chief and every worker are started, and a finished job ends with the chief's code",
          "[supervisor]") {
  Harness h({.workers = 2});
  CHECK(h.Spawned(kChief));
  CHECK(h.Spawned(Worker(0)));
  CHECK(h.Spawned(Worker(1)));

  h.Exit(kChief, 0);
  CHECK(h.Signalled(Worker(0)) == SIGTERM);
  CHECK_FALSE(h.Ended().has_value());
  h.Exit(Worker(1), 0);
  h.Exit(Worker(0), 0);

  CHECK(h.Ended() == 0);
}

TEST_CASE("supervisor: a killed worker starts again, at once after a healthy life and later when it dies young",
          "[supervisor]") {
  Harness h({.workers = 1});

  h.now += absl::Seconds(10);
  h.Die(Worker(0), SIGKILL);
  CHECK(h.Spawned(Worker(0)));
  h.Die(Worker(0), SIGKILL);
  CHECK_FALSE(h.Spawned(Worker(0)));
  CHECK(h.policy.NextDeadline() == h.now + absl::Milliseconds(200));
  h.After(absl::Milliseconds(200));
  CHECK(h.Spawned(Worker(0)));
  h.Die(Worker(0), SIGKILL);
  CHECK(h.policy.NextDeadline() == h.now + absl::Milliseconds(400));
}

TEST_CASE("supervisor: every end of a worker is reported to the chief, before it starts again and in a stop",
          "[supervisor]") {
  const bool stopping = GENERATE(false, true);
  Harness h({.workers = 3});
  h.now += absl::Seconds(10);
  if (stopping) h.Apply(StopSignal{});

  h.Die(Worker(0), SIGSEGV);
  CHECK(h.Spawned(Worker(0)) == !stopping);
  REQUIRE(h.Reported(Worker(0)).has_value());
  CHECK(h.Reported(Worker(0))->signal == SIGSEGV);
  CHECK(std::holds_alternative<ReportExit>(h.last.front()));
  h.Die(Worker(1), SIGKILL);
  REQUIRE(h.Reported(Worker(1)).has_value());
  CHECK(h.Reported(Worker(1))->signal == SIGKILL);
  h.Exit(Worker(2), 70);
  REQUIRE(h.Reported(Worker(2)).has_value());
  CHECK(h.Reported(Worker(2))->signal == 0);
  CHECK(h.Reported(Worker(2))->code == 70);
}

TEST_CASE("supervisor: nothing is reported to a chief that is gone, or after the second stop signal", "[supervisor]") {
  Harness gone({.workers = 1});
  gone.now += absl::Seconds(10);
  gone.Die(kChief, SIGKILL);
  gone.Apply(SpawnFailed{kChief, "Resource temporarily unavailable"});
  gone.Die(Worker(0), SIGKILL);
  CHECK_FALSE(gone.Reported(Worker(0)).has_value());

  Harness twice({.workers = 1});
  twice.Apply(StopSignal{});
  twice.now += absl::Seconds(10);
  twice.Apply(StopSignal{});
  twice.Die(Worker(0), SIGKILL);
  CHECK_FALSE(twice.Reported(Worker(0)).has_value());
}

TEST_CASE("supervisor: codes that a restart cannot mend are never restarted", "[supervisor]") {
  for (int code : {64, 65, 70, 76, 77, 78}) {
    CAPTURE(code);
    if (code != 70) {
      Harness worker({.workers = 1});
      worker.now += absl::Seconds(10);
      worker.Exit(Worker(0), code);
      CHECK_FALSE(worker.Spawned(Worker(0)));
      CHECK(worker.Signalled(kChief) == SIGTERM);
      worker.Exit(kChief, 75);
      CHECK(worker.Ended() == code);
    }

    Harness chief({.workers = 1});
    chief.now += absl::Seconds(10);
    chief.Exit(kChief, code);
    CHECK_FALSE(chief.Spawned(kChief));
    CHECK(chief.Signalled(Worker(0)) == SIGTERM);
    chief.Exit(Worker(0), 75);
    CHECK(chief.Ended() == code);
  }
}

TEST_CASE("supervisor: a worker that reports an error of its own is started again while the chief allows it",
          "[supervisor]") {
  Harness h({.workers = 1});
  for (int failure = 1; failure <= 3; ++failure) {
    h.now += absl::Seconds(10);
    h.Exit(Worker(0), 70);
    CHECK(h.Spawned(Worker(0)));
    CHECK(h.Signalled(kChief) == 0);
  }

  h.Exit(kChief, 70);

  CHECK(h.Signalled(Worker(0)) == SIGTERM);
  h.Exit(Worker(0), 75);
  CHECK(h.Ended() == 70);
}

TEST_CASE("supervisor: a process that is started again is said to have ended with its cause", "[supervisor]") {
  Harness h({.workers = 1});

  h.Exit(kChief, 74, "DIR/chief/lock: Input/output error");
  CHECK(h.Said() == std::vector<std::string>{
                        "the chief ended with code 74: DIR/chief/lock: Input/output error; starting it again"});
  h.Exit(Worker(0), 70, "a kernel failed");
  CHECK(h.Said() == std::vector<std::string>{"worker-0 ended with code 70: a kernel failed; starting it again"});
  h.After(absl::Seconds(10));
  h.Exit(kChief, 69);
  CHECK(h.Said() == std::vector<std::string>{"the chief ended with code 69; starting it again"});
}

TEST_CASE("supervisor: the cause of the end is that of the process whose code it is", "[supervisor]") {
  Harness chief({.workers = 1});
  chief.Exit(kChief, 74, "the disk is full");
  chief.After(absl::Seconds(10));
  chief.Exit(kChief, 65, "the loss is NaN");
  CHECK(chief.Said().empty());  // it is the last line
  chief.Exit(Worker(0), 75);
  CHECK(chief.Ended() == 65);
  CHECK(chief.Cause() == "the loss is NaN");

  Harness silent({.workers = 1});
  silent.Exit(kChief, 74, "the disk is full");
  silent.After(absl::Seconds(10));
  silent.Exit(kChief, 78);
  silent.Exit(Worker(0), 75);
  CHECK(silent.Ended() == 78);
  CHECK(silent.Cause().empty());

  Harness worker({.workers = 1});
  worker.Exit(Worker(0), 78, "no GPU");
  worker.Exit(kChief, 75);
  CHECK(worker.Ended() == 78);
  CHECK(worker.Cause() == "worker-0: no GPU");

  // A worker may end first with what the chief told it.
  Harness told({.workers = 1});
  told.Exit(Worker(0), 65, "the job failed. The chief's last line says why");
  told.Exit(kChief, 65, "the loss is NaN");
  CHECK(told.Ended() == 65);
  CHECK(told.Cause() == "the loss is NaN");
}

TEST_CASE("supervisor: a process that cannot be made is tried again later and costs nobody a failure", "[supervisor]") {
  Harness h({.workers = 1});
  h.now += absl::Seconds(10);
  for (const Role& role : {kChief, Worker(0)}) {
    CAPTURE(RoleName(role));
    h.Die(role, SIGKILL);
    REQUIRE(h.Spawned(role));
    for (int attempt = 1; attempt <= 6; ++attempt) {
      h.Apply(SpawnFailed{role, "Resource temporarily unavailable"});
      CHECK_FALSE(h.Spawned(role));
      REQUIRE(h.policy.NextDeadline() > h.now);
      h.now = h.policy.NextDeadline();
      h.Apply(Tick{});
      CHECK(h.Spawned(role));
    }
  }

  CHECK_FALSE(h.Ended().has_value());
}

TEST_CASE("supervisor: a stop that finds no memory for a process does not wait for it", "[supervisor]") {
  Harness h({.workers = 1});
  h.Apply(SpawnFailed{Worker(0), "Resource temporarily unavailable"});

  h.Apply(StopSignal{});
  h.Exit(kChief, 75);

  CHECK(h.Ended() == 75);
}

TEST_CASE("supervisor: the chief hears of the last worker that no other is left, and why", "[supervisor]") {
  Harness h({.workers = 2});
  h.now += absl::Seconds(10);

  h.Exit(Worker(0), 78, "no GPU here");
  REQUIRE(h.Report(Worker(0)).has_value());
  CHECK_FALSE(h.Report(Worker(0))->last);
  h.Exit(Worker(1), 78, "no GPU there");

  REQUIRE(h.Report(Worker(1)).has_value());
  CHECK(h.Report(Worker(1))->last);
  CHECK(h.Report(Worker(1))->cause == "no GPU there");
}

TEST_CASE("supervisor: the only worker is not the last one while it is started again", "[supervisor]") {
  Harness h({.workers = 1});
  h.now += absl::Seconds(10);

  h.Die(Worker(0), SIGKILL);

  REQUIRE(h.Report(Worker(0)).has_value());
  CHECK_FALSE(h.Report(Worker(0))->last);
}

TEST_CASE("supervisor: one refused worker does not stop a job that others can do", "[supervisor]") {
  Harness h({.workers = 2});

  h.Exit(Worker(0), 78);

  CHECK(h.Signalled(kChief) == 0);
  CHECK_FALSE(h.Ended().has_value());
}

TEST_CASE("supervisor: a killed chief starts again while the workers live", "[supervisor]") {
  Harness h({.workers = 1});
  h.now += absl::Seconds(10);

  h.Die(kChief, SIGKILL);

  CHECK(h.Spawned(kChief));
  CHECK(h.Signalled(Worker(0)) == 0);
}

TEST_CASE("supervisor: a chief that keeps crashing is given up, one that is killed never is", "[supervisor]") {
  Harness killed({.workers = 1});
  for (int i = 0; i < 20; ++i) {
    killed.Die(kChief, SIGKILL);
    killed.After(absl::Seconds(5));
  }
  CHECK(killed.policy.NextDeadline() == absl::InfiniteFuture());

  Harness crashing({.workers = 1});
  for (int i = 0; i < 2; ++i) {
    crashing.Die(kChief, SIGSEGV);
    crashing.now += absl::Seconds(1);
    crashing.Apply(Tick{});
    REQUIRE(crashing.Spawned(kChief));
  }
  crashing.Die(kChief, SIGSEGV);
  CHECK(crashing.Signalled(Worker(0)) == SIGTERM);
  crashing.Exit(Worker(0), 75);
  CHECK(crashing.Ended() == 70);
}

TEST_CASE("supervisor: a chief whose disk stays full is given up though each life lasts a while", "[supervisor]") {
  Harness h({.workers = 1});
  for (int life = 1; life <= 2; ++life) {
    h.now += absl::Seconds(20);
    h.Exit(kChief, 74);
    REQUIRE(h.Spawned(kChief));
  }
  h.now += absl::Seconds(20);

  h.Exit(kChief, 74);

  CHECK_FALSE(h.Spawned(kChief));
  h.Exit(Worker(0), 75);
  CHECK(h.Ended() == 74);
}

TEST_CASE("supervisor: workers are killed on the period asked for, in seconds or in steps, and counted",
          "[supervisor]") {
  Harness timed({.workers = 3, .kills = {.period = absl::Seconds(5), .steps = {}, .seed = 7}});
  timed.After(absl::Seconds(4));
  CHECK(timed.Count(SIGKILL) == 0);
  timed.After(absl::Seconds(1));
  CHECK(timed.Count(SIGKILL) == 1);
  CHECK(timed.policy.NextDeadline() == timed.now + absl::Seconds(5));

  Harness stepped({.workers = 3, .kills = {.period = {}, .steps = 40, .seed = 7}});
  stepped.Apply(StepSeen{39});
  CHECK(stepped.Count(SIGKILL) == 0);
  stepped.Apply(StepSeen{41});
  CHECK(stepped.Count(SIGKILL) == 1);
  stepped.Apply(StepSeen{80});
  CHECK(stepped.Count(SIGKILL) == 0);
  stepped.Apply(StepSeen{81});
  CHECK(stepped.Count(SIGKILL) == 1);
  CHECK(stepped.policy.kills() == 2);
}

TEST_CASE("supervisor: a worker whose kill is on its way is not killed again", "[supervisor]") {
  Harness h({.workers = 1, .kills = {.period = absl::Seconds(5), .steps = {}, .seed = 7}});
  h.After(absl::Seconds(5));
  REQUIRE(h.Signalled(Worker(0)) == SIGKILL);

  h.After(absl::Seconds(5));
  CHECK(h.Count(SIGKILL) == 0);
  CHECK(h.policy.kills() == 1);

  h.Die(Worker(0), SIGKILL);
  h.After(absl::Seconds(5));
  CHECK(h.Count(SIGKILL) == 1);
  CHECK(h.policy.kills() == 2);
}

}  // namespace
}  // namespace lockstep::supervisor
