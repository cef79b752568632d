// Which kernel plan is the job's, as its directory says. It decides the bits, so the manifest of the checkpoint that is
// restored decides; plans/current decides while nothing was trained yet.
//
// Threading: as the storage; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/term/term_claim.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

struct JobPlan {
  std::string hash;         // empty: none was made yet
  std::string data_digest;  // of the data it was made with; empty: not known
};

// Stores a plan and names it as the job's. InvalidArgument when `hash` is not its SHA-256.
absl::Status StoreJobPlan(TermHold& hold, const JobPlan& plan, const std::string& bytes);

// `trained_with`: the kernel plan of the checkpoint that is restored, empty when there is none. `data_digest`: of the
// job's data as the chief knows it, or empty. Mends plans/current, with a word in the log, where it says something else
// or is damaged; DataLoss or NotFound when the plan that decides is not there whole, or when it cannot be told which
// one that is.
absl::StatusOr<JobPlan> FindJobPlan(TermHold& hold, const std::string& trained_with, const std::string& data_digest);

// The bytes of a plan, verified.
absl::StatusOr<std::string> LoadJobPlan(const Storage& storage, const std::string& hash);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_
