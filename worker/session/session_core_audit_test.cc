// What a replica tells of its state for the audit (rule 22).
#include <catch2/catch.hpp>

#include "worker/session/session_core_harness.h"

namespace lockstep::worker {
namespace {

TEST_CASE("session: an audit is finished before the next step begins", "[session][rule22]") {
  WorkerHarness worker;
  worker.policy.audit_every_steps = 12;
  worker.Run();
  worker.StepTo(11);

  worker.Finish(12, worker.Word());
  REQUIRE(worker.Has<ComputeDigest>());
  CHECK_FALSE(worker.Has<RunStep>());
  worker.Give(DigestComputed{{12, 0}, "d12"});

  CHECK(worker.Last<RunStep>().step == 13);
  worker.Wait(absl::Seconds(1));
  CHECK(worker.Message<Report>().digests.at(0).digest == "d12");
}

TEST_CASE("session: an audit that a verdict meets is told before the acknowledgement", "[session][rule22]") {
  WorkerHarness worker;
  worker.policy.audit_every_steps = 12;
  worker.Run();
  worker.StepTo(11);
  worker.Finish(12, worker.Word());
  REQUIRE(worker.Has<ComputeDigest>());
  worker.Wait(absl::Seconds(1));
  const Generation generation = worker.core.generation();
  worker.Command(Verdict{"replicas differ"}, generation);

  worker.Give(DigestComputed{{12, 0}, "d12"});
  CHECK_FALSE(worker.Has<RunStep>());
  worker.Give(ComputingStopped{generation});

  REQUIRE(worker.Told<Report>());
  CHECK(worker.Message<Report>().digests.at(0).digest == "d12");
  CHECK(worker.Told<VerdictAck>());
}

TEST_CASE("session: what a worker was told of a difference it tells the next chief", "[session][rule22]") {
  WorkerHarness worker;
  worker.Run();
  worker.Command(StatesDiffer{"line", 9});

  worker.Give(ChiefDisconnected{"the stream was reset"});
  worker.Wait(absl::Seconds(10));
  worker.Give(ChiefConnected{});

  CHECK(worker.Message<Hello>().differ == StatesDiffer{"line", 9});
}

}  // namespace
}  // namespace lockstep::worker
