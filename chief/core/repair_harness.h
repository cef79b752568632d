// Helpers for tests of the audit and of the way back, on a ChiefHarness (rule 22).
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_CORE_REPAIR_HARNESS_H_
#define LOCKSTEP_CHIEF_CORE_REPAIR_HARNESS_H_

#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {

// Answers the newest RecordRepair as a storage whose newest audited checkpoint is of `step`.
inline void GoBackTo(ChiefHarness& chief, uint64_t step, const EvaluationLedger& ledger = {}) {
  REQUIRE(chief.Count<RecordRepair>() > 0);
  const Lineage lineage = chief.Last<RecordRepair>().lineage;
  chief.Do(RepairRecorded{lineage, {"lineage-1", step, absl::StrCat("digest-of-", step)}, {}, true, ledger});
  chief.Advance(absl::Seconds(1));
}

inline void SaveAt(ChiefHarness& chief, uint64_t step) {
  chief.StepTo(step);
  chief.TakeSnapshots(SnapshotCause::kDue);
  REQUIRE(chief.View().published_step == step);
}

// All members apply `step` and report their digests; that of worker `flipped` differs.
inline void FlipAt(ChiefHarness& chief, uint64_t step, int flipped) {
  chief.StepTo(step);
  chief.worker(flipped).digest_suffix = "-flipped";
  for (int index : chief.Members()) chief.Audit(index);
  chief.worker(flipped).digest_suffix = "";
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_REPAIR_HARNESS_H_
