#include "chief/core/snapshot_terms.h"

#include <catch2/catch.hpp>

#include "chief/core/core_fixture.h"
#include "chief/core/member_claims.h"

namespace lockstep::chief {
namespace {

// Workers 0 and 1 are members of generation 2.1; an evaluation of 4 slices is due at step 20.
struct Taken : CoreFixture {
  Taken() {
    policy.training.eval_every_steps = 20;
    policy.training.eval_slices = 4;
    for (int index = 0; index < 3; ++index) Add(index);
    life.SendForm(Now(), Form(), {&worker(0), &worker(1)}, 0);
  }
  // `judged`: the newest evaluation that the ledger of the snapshot has.
  SnapshotTerms Terms(int index, SnapshotCause cause, const Generation& generation, uint64_t judged = 20) {
    constexpr uint64_t step = 20;
    SnapshotTaken message;
    message.ledger.step = judged;
    message.generation = generation;
    message.snapshot = SnapshotId{"lineage", step, "digest"};
    message.cause = cause;
    return TermsOf(Now(), life, worker(index), message);
  }

  GenerationLife life;
};

TEST_CASE("snapshot terms: a member's counts for all members of its generation", "[core]") {
  Taken taken;
  const SnapshotTerms terms = taken.Terms(0, SnapshotCause::kDue, {2, 1});
  CHECK(terms.of_current);
  CHECK(terms.members == std::vector<Incarnation>{taken.Id(0), taken.Id(1)});
  CHECK(terms.audits);
  CHECK(terms.evaluated);
}

TEST_CASE("snapshot terms: before an adoption it counts for those that its Hello named", "[core]") {
  Taken taken;
  taken.worker(2).busy = Generation{1, 5};
  MemberClaims().Give({1, 5}, {taken.worker(2).member, taken.worker(0).member}, {&taken.worker(2)});

  const SnapshotTerms terms = taken.Terms(2, SnapshotCause::kDue, {1, 5});

  CHECK_FALSE(terms.of_current);
  CHECK(terms.members == std::vector<Incarnation>{taken.Id(2), taken.Id(0)});
  CHECK(terms.audits);
}

TEST_CASE("snapshot terms: of a worker that came to rest since it counts as evaluated as its state is", "[core]") {
  Taken taken;
  const auto evaluated = [&](const Position& held) {
    taken.worker(2).held = HeldState{"lineage", held, ""};
    return taken.Terms(2, SnapshotCause::kDue, {1, 5}).evaluated;
  };
  CHECK_FALSE(evaluated({20, 0}));
  CHECK_FALSE(evaluated({20, 3}));
  CHECK(evaluated({20, 4}));
  CHECK(evaluated({21, 0}));  // steps evaluate before they go on
}

TEST_CASE("snapshot terms: one that is told again after its worker went on is evaluated as it was when it was taken",
          "[core]") {
  Taken taken;
  taken.worker(2).held = HeldState{"lineage", {20, 4}, ""};
  CHECK_FALSE(taken.Terms(2, SnapshotCause::kAtRest, {1, 5}, /*judged=*/10).evaluated);
  CHECK(taken.Terms(2, SnapshotCause::kAtRest, {1, 5}, /*judged=*/20).evaluated);
}

TEST_CASE("snapshot terms: it waits while nobody has named the members of its generation", "[core]") {
  Taken taken;
  taken.worker(2).busy = Generation{1, 5};
  CHECK_FALSE(taken.Terms(2, SnapshotCause::kDue, {1, 5}).early);

  taken.worker(2).claim = "their digest";

  CHECK(taken.Terms(2, SnapshotCause::kDue, {1, 5}).early);
  CHECK_FALSE(taken.Terms(2, SnapshotCause::kDue, {1, 4}).early);
}

TEST_CASE("snapshot terms: of a generation that is over it audits nothing", "[core]") {
  Taken taken;
  const SnapshotTerms terms = taken.Terms(2, SnapshotCause::kDue, {1, 5});
  CHECK(terms.members == std::vector<Incarnation>{taken.Id(2)});
  CHECK_FALSE(terms.audits);
}

TEST_CASE("snapshot terms: at rest it counts for those that were asked, and audits if all that computed it are asked",
          "[core]") {
  Taken taken;
  taken.Hold(0, 20);
  taken.worker(0).rest_asked = Position{20, 0};
  SnapshotTerms terms = taken.Terms(0, SnapshotCause::kAtRest, {});
  CHECK_FALSE(terms.audits);
  CHECK_FALSE(terms.evaluated);  // it stopped before the evaluation was done

  taken.worker(2).rest_asked = Position{20, 0};  // it received its state from another
  CHECK_FALSE(taken.Terms(0, SnapshotCause::kAtRest, {}).audits);

  taken.worker(1).rest_asked = Position{20, 0};
  taken.worker(0).held->position.evaluated_slices = 4;
  terms = taken.Terms(0, SnapshotCause::kAtRest, {});
  CHECK(terms.members == std::vector<Incarnation>{taken.Id(0), taken.Id(1), taken.Id(2)});
  CHECK(terms.audits);
  CHECK(terms.evaluated);
}

TEST_CASE("snapshot terms: a state that was finished under an earlier chief may lack the evaluation", "[core]") {
  Taken taken;
  taken.worker(0).finished = true;
  taken.worker(0).claimed = HeldState{"lineage", {20, 0}, ""};
  CHECK_FALSE(taken.Terms(0, SnapshotCause::kEnd, {2, 1}).evaluated);
  taken.worker(0).claimed->position.evaluated_slices = 4;
  CHECK(taken.Terms(0, SnapshotCause::kEnd, {2, 1}).evaluated);
}

TEST_CASE("snapshot terms: of the step that a generation began at nothing is audited", "[core]") {
  Taken taken;
  Form form;
  form.position = Position{20, 0};
  taken.life.SendForm(taken.Now(), form, {&taken.worker(0), &taken.worker(1)}, 0);
  CHECK_FALSE(taken.Terms(0, SnapshotCause::kEnd, {2, 2}).audits);
}

}  // namespace
}  // namespace lockstep::chief
