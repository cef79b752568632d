// Which kernel plan is the job's. It decides the bits, so the manifest of the checkpoint that is restored decides; the
// commit log does while nothing was trained yet, and in a directory without a log, of an earlier program, the file
// plans/current.
//
// Threading: as the storage; every call blocks.
#ifndef LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_
#define LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/term/job_log.h"
#include "chief/term/term_claim.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

struct JobPlan {
  std::string hash;         // empty: none was made yet
  std::string data_digest;  // of the data it was made with; empty: not known
};

// Stores a plan and names it as the job's. InvalidArgument when `hash` is not its SHA-256.
absl::Status StoreJobPlan(TermHold& hold, JobLog& log, const JobPlan& plan, const std::string& bytes);

// `trained_with`: the kernel plan of the checkpoint that is restored, empty when there is none. `data_digest`: of the
// job's data as the chief knows it, or empty. `logged`: as the commit log says it; nullopt where there is none. Changes
// nothing. DataLoss or NotFound when the plan that decides is not there whole, or when it cannot be told which one that
// is.
absl::StatusOr<JobPlan> FindJobPlan(const Storage& storage, const std::optional<JobPlan>& logged,
                                    const std::string& trained_with, const std::string& data_digest);

// OK when the plan is there whole. Else what it decides, and what to do.
absl::Status CheckPlanIsThere(const Storage& storage, const std::string& hash);

// The bytes of a plan, verified.
absl::StatusOr<std::string> LoadJobPlan(const Storage& storage, const std::string& hash);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_
