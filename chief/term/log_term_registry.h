// Terms in the job's commit log: a claim is one append. In a directory of an earlier program, which has no log yet, a
// chief claims in the old way as well, so that a paused chief of that program is fenced by its own rules.
//
// Threading: as JobLog; every call blocks.
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
  // Neither is owned. `older` has the terms from before the log. With `succeeds`, the log's newest term as a standby
  // saw it end or fall silent, a claim is for the term after that one alone: what was seen says nothing of a later
  // chief.
  LogTermRegistry(JobLog& log, TermRegistry& older, std::optional<int64_t> succeeds = std::nullopt)
      : log_(log), older_(older), succeeds_(succeeds) {}

  // Aborted with IsFenced: another chief claimed at the same instant, or has followed the term that this one succeeds.
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
  // Terms were claimed in the old way and the log does not have the job's history yet: a chief of an earlier program
  // may claim another.
  bool carries_ = false;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_TERM_LOG_TERM_REGISTRY_H_
