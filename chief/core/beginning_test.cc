#include "chief/core/beginning.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"

namespace lockstep::chief {
namespace {

struct Start : CoreFixture {
  Start() {
    for (int index = 0; index < 3; ++index) Add(index);
    recovered.checkpoint = SnapshotId{"lineage", 10, "ten"};
  }
  lockstep::Form Form() { return BeginningOf(All(), history, CheckpointTracker(recovered), policy.training); }

  RecoveredState recovered;
};

TEST_CASE("beginning: the newest state at rest is sent to those that hold another one", "[core]") {
  Start start;
  start.Hold(0, 11);
  start.Hold(1, 12);
  start.Hold(2, 12);

  const lockstep::Form form = start.Form();

  CHECK_FALSE(form.restore.has_value());
  CHECK(form.position == Position{12, 0});
  CHECK(form.source_rank == 1);
  CHECK(form.receivers == std::vector<uint32_t>{0});
}

TEST_CASE("beginning: a state of the same position with other bits is replaced", "[core]") {
  Start start;
  for (int index = 0; index < 3; ++index) start.Hold(index, 12);
  start.worker(2).held->digest = "other";

  CHECK(start.Form().receivers == std::vector<uint32_t>{2});
}

TEST_CASE("beginning: what is older than the checkpoint, or of another lineage, is no source", "[core]") {
  Start start;
  start.recovered.evaluated = false;
  start.recovered.ledger.step = 10;
  start.Hold(0, 9);
  start.Hold(1, 30);
  start.worker(1).held->lineage = "other";

  const lockstep::Form form = start.Form();

  CHECK(form.restore == start.recovered.checkpoint);
  CHECK(form.position == Position{10, 0});
  CHECK(form.ledger.step == 10);
  CHECK(form.receivers.empty());
}

TEST_CASE("beginning: as new as the checkpoint is new enough", "[core]") {
  Start start;
  start.Hold(2, 10);
  CHECK_FALSE(start.Form().restore.has_value());
  CHECK(start.Form().source_rank == 2);
}

}  // namespace
}  // namespace lockstep::chief
