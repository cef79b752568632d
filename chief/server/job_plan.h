// Finds the job's kernel plan. The plan decides the bits, so the manifest of the restored checkpoint names it. While
// nothing was trained yet the commit log does; in a directory without a log, of an earlier program, the file
// plans/current does.
//
// Threading: thread-safe if the storage is; every call blocks on it.
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
  std::string data_digest;  // of the data that it was made with; empty: not known
};

// Stores a plan and makes it the job's. InvalidArgument if `hash` is not the SHA-256 of `bytes`.
absl::Status StoreJobPlan(TermHold& hold, JobLog& log, const JobPlan& plan, const std::string& bytes);

// Finds the job's plan. `trained_with`: the kernel plan of the restored checkpoint, empty if there is none.
// `data_digest`: of the job's data if the chief knows it, else empty. `logged`: the plan in the commit log, nullopt if
// there is no log. Changes nothing. DataLoss or NotFound if the plan is missing or damaged, or if it cannot be
// determined which one it is.
absl::StatusOr<JobPlan> FindJobPlan(const Storage& storage, const std::optional<JobPlan>& logged,
                                    const std::string& trained_with, const std::string& data_digest);

// OK if the plan is stored and undamaged. An error says what the plan decides and what to do.
absl::Status CheckPlanIsThere(const Storage& storage, const std::string& hash);

// The bytes of a plan, verified.
absl::StatusOr<std::string> LoadJobPlan(const Storage& storage, const std::string& hash);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_JOB_PLAN_H_
