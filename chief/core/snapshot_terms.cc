#include "chief/core/snapshot_terms.h"

#include <algorithm>
#include <set>

namespace lockstep::chief {
namespace {

// Whether the current generation computed the state of this step. One that began at it only took over what members of
// an earlier one computed, of which some may not be here to tell theirs.
bool Computed(const CoreContext& context, const GenerationLife::Current& generation, uint64_t step) {
  const bool formed_here = generation.id.term == context.term;
  return !generation.ids.empty() && (!formed_here || step > generation.begin.step);
}

}  // namespace

SnapshotTerms TermsOf(const CoreContext& context, const GenerationLife& life, const Worker& worker,
                      const SnapshotTaken& message) {
  const uint64_t step = message.snapshot.step;
  const bool at_rest = message.cause == SnapshotCause::kAtRest;
  SnapshotTerms terms;
  terms.of_current = message.generation == life.current().id && life.current().Has(worker.id());
  const bool of_claimed = !terms.of_current && !worker.AtRest() && message.generation == worker.busy;
  terms.early = of_claimed && worker.claims == nullptr && !worker.claim.empty();
  if (at_rest) {
    for (const Worker* other : context.roster.InOrder()) {
      if (other->rest_asked.has_value() && other->rest_asked->step == step) terms.members.push_back(other->id());
    }
    const std::set<Incarnation>& ids = life.current().ids;
    const std::set<Incarnation> asked(terms.members.begin(), terms.members.end());
    terms.audits =
        Computed(context, life.current(), step) && std::includes(asked.begin(), asked.end(), ids.begin(), ids.end());
  } else if (terms.of_current) {
    terms.members = life.current().Ids();
    terms.audits = Computed(context, life.current(), step);
  } else if (of_claimed && worker.claims != nullptr) {
    for (const Member& member : *worker.claims) terms.members.push_back(member.incarnation);
  } else {
    terms.members = {worker.id()};
    terms.audits = false;
  }
  // Steps evaluate before they save; a state that is saved at rest may have stopped halfway, and one that was finished
  // or saved under an earlier chief may not have known of evaluations.
  const Position evaluated = RestoredPosition(context.policy.training, step);
  if (at_rest) {
    terms.evaluated = worker.held.has_value() && worker.held->position >= evaluated;
  } else if (worker.finished && worker.claimed.has_value() && worker.claimed->position.step == step) {
    terms.evaluated = worker.claimed->position >= evaluated;
  } else if (worker.held.has_value() && worker.held->position.step == step) {
    terms.evaluated = worker.held->position >= evaluated;
  }
  // It is told again with every new session, and the worker may have gone on since: its own ledger is that of then.
  if (evaluated.evaluated_slices > 0 && message.ledger.step < step) terms.evaluated = false;
  return terms;
}

}  // namespace lockstep::chief
