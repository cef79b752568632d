#include "chief/core/plan_tracker.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

bool IsName(const std::string& text) {
  return text.size() <= PlanTracker::kMaxNameBytes && std::all_of(text.begin(), text.end(), absl::ascii_isgraph);
}

std::string Shown(const std::string& text) { return absl::CHexEscape(text.substr(0, PlanTracker::kMaxNameBytes)); }

}  // namespace

std::string PlanTracker::WhatIsWrong(const PlanMade& made) {
  const bool named = !made.plan_hash.empty() && IsName(made.plan_hash) && IsName(made.data_digest);
  if (made.plan.size() <= kMaxPlanBytes && named) return "";
  return absl::StrCat("its kernel plan has ", made.plan.size(), " bytes under the name '", Shown(made.plan_hash),
                      "', made with the data '", Shown(made.data_digest), "'; at most ", kMaxPlanBytes,
                      " are accepted, and digests as names");
}

const StorePlan& PlanTracker::Accept(const Incarnation& maker, const std::string& name, const PlanMade& made) {
  maker_ = maker;
  being_stored_ =
      StorePlan{made.plan_hash, made.plan, made.data_digest, absl::StrCat("made by ", name, ": everyone replays it")};
  return *being_stored_;
}

void PlanTracker::Stored(const PlanStored& event, absl::Time now) {
  if (!being_stored_.has_value() || event.plan_hash != being_stored_->plan_hash) return;
  hash_ = event.plan_hash;
  data_digest_ = being_stored_->data_digest;
  being_stored_.reset();
  trouble_.Worked(now);
}

std::optional<StorePlan> PlanTracker::RetryDue(absl::Time now) {
  if (!trouble_.active() || !being_stored_.has_value() || now < trouble_.retry_at()) return std::nullopt;
  trouble_.TryAgain();
  return being_stored_;
}

}  // namespace lockstep::chief
