// Claims terms in the job's commit log: a claim is one append. In a directory of an earlier program, without a log, a
// chief also claims in the old way, so that a paused chief of that program is fenced by its own rules.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_TERM_LOG_TERM_REGISTRY_H_
#define LOCKSTEP_CHIEF_TERM_LOG_TERM_REGISTRY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/term/job_log.h"
#include "chief/term/term_registry.h"

namespace lockstep::chief {

class LogTermRegistry : public TermRegistry {
 public:
  // Owns neither. `older` has the terms from before the log. `succeeds`: the log's newest term when a standby saw it
  // end or fall silent; a claim is then only for the term directly after it, as nothing is known about a later chief.
  LogTermRegistry(JobLog& log, TermRegistry& older, std::optional<int64_t> succeeds = std::nullopt)
      : log_(log), older_(older), succeeds_(succeeds) {}

  // Aborted with IsFenced: another chief claimed at the same instant, or has succeeded the term `succeeds`.
  absl::StatusOr<int64_t> Claim(TermOwner owner) override;
  absl::StatusOr<int64_t> Newest() const override;
  absl::StatusOr<TermOwner> OwnerOf(int64_t term) const override;
  absl::Status Refresh() override;
  std::string Describe(int64_t term) const override;

 private:
  absl::Status CheckTurn(const std::optional<CommitRecord>& newest, const TermOwner& owner) const;

  JobLog& log_;
  TermRegistry& older_;
  const std::optional<int64_t> succeeds_;
  // Terms were claimed in the old way, and the log does not have the job's history yet: a chief of an earlier program
  // may claim another term.
  bool carries_ = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_LOG_TERM_REGISTRY_H_
