#include "chief/term/log_term_registry.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "chief/term/term_claim.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

absl::Status LogTermRegistry::CheckTurn(const std::optional<CommitRecord>& newest, const TermOwner& owner) const {
  if (!succeeds_.has_value() || !newest.has_value() || newest->term() <= *succeeds_) return absl::OkStatus();
  const LogOwner& other = newest->owner();
  // Its own claim, whose outcome it was not told.
  if (other.host() == owner.host() && other.pid() == owner.pid()) return absl::OkStatus();
  return FencedError(absl::StrCat("the chief with pid ", other.pid(), " on host ", other.host(), " claimed term ",
                                  newest->term(), " of ", Describe(newest->term())));
}

absl::StatusOr<int64_t> LogTermRegistry::Claim(TermOwner owner) {
  LS_ASSIGN_OR_RETURN(const std::optional<CommitRecord> newest, log_.Read());
  LS_RETURN_IF_ERROR(CheckTurn(newest, owner));
  LS_ASSIGN_OR_RETURN(const int64_t older, older_.Newest());
  carries_ = older > 0 && (!newest.has_value() || newest->lineage().empty());
  // Each record that is damaged may have been the claim of a term, whose chief lives: theirs are passed over.
  const auto unknown = static_cast<int64_t>(log_.damage().size());
  int64_t term = std::max(older, newest.has_value() ? newest->term() : 0) + unknown + 1;
  if (carries_) {
    LS_ASSIGN_OR_RETURN(const int64_t claimed, older_.Claim(owner));
    term = std::max(term, claimed);
  }
  LS_RETURN_IF_ERROR(log_.Change(absl::StrCat("term ", term, " claimed"), [&](CommitRecord& record) {
    record.set_term(term);
    record.mutable_owner()->set_host(owner.host());
    record.mutable_owner()->set_pid(owner.pid());
    record.mutable_owner()->clear_address();
    record.clear_ended();
    record.clear_exit_code();
  }));
  return term;
}

absl::StatusOr<int64_t> LogTermRegistry::Newest() const {
  LS_ASSIGN_OR_RETURN(const int64_t newest, log_.NewestTerm());
  if (!carries_) return newest;
  LS_ASSIGN_OR_RETURN(const int64_t older, older_.Newest());
  return std::max(newest, older);
}

absl::StatusOr<TermOwner> LogTermRegistry::OwnerOf(int64_t term) const {
  LS_ASSIGN_OR_RETURN(const int64_t newest, log_.NewestTerm());
  if (newest != term) return older_.OwnerOf(term);
  const LogOwner found = log_.owner();
  TermOwner owner;
  owner.set_term(term);
  owner.set_pid(found.pid());
  owner.set_host(found.host());
  return owner;
}

absl::Status LogTermRegistry::Refresh() {
  LS_RETURN_IF_ERROR(log_.Refresh());
  return carries_ ? older_.Refresh() : absl::OkStatus();
}

std::string LogTermRegistry::Describe(int64_t term) const { return carries_ ? older_.Describe(term) : log_.Describe(); }

}  // namespace lockstep::chief
