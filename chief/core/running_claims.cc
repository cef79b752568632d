#include "chief/core/running_claims.h"

namespace lockstep::chief {

bool ClaimComplete(const CoreContext& context, const Worker& witness, const Lineage& published) {
  if (witness.claims == nullptr || !witness.claimed.has_value()) return false;
  for (const Member& member : *witness.claims) {
    const Worker* worker = context.roster.Find(member.incarnation);
    if (worker == nullptr || worker->busy != witness.busy || worker->claims == nullptr ||
        worker->claim != witness.claim) {
      return false;
    }
    if (!worker->claimed.has_value() || worker->claimed->lineage != witness.claimed->lineage) return false;
  }
  // A lineage that an audit gave up is not part of the job. With one lineage per generation, neither is one that began
  // before the published one.
  const Lineage& lineage = witness.claimed->lineage;
  if (!context.policy.lineage_per_generation) return lineage == context.job_lineage;
  return JobLineage(lineage) == context.job_lineage && BegunBy(lineage) >= BegunBy(published);
}

bool ClaimImpossible(const CoreContext& context, const Worker& witness) {
  bool left = false;
  if (witness.claims == nullptr) return false;
  for (const Member& member : *witness.claims) {
    const Worker* worker = context.roster.Find(member.incarnation);
    if (worker == nullptr) return false;  // it may still come, and hold more than the others
    left = left || worker->busy != witness.busy || worker->verdict_sent;
  }
  return left;
}

}  // namespace lockstep::chief
