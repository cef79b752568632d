// What an audit's repair asks of the checkpoints: one to go back to, and the newer ones out of the way.
#include <cstdint>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/carry_over_manifest.h"
#include "chief/checkpoint/manifest_store.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {

int64_t ManifestStore::OldestAudited() const {
  std::set<int64_t> steps;
  for (const auto& [name, checkpoint] : accepted_) {
    if (IsAudited(checkpoint.manifest)) steps.insert(checkpoint.manifest.step());
  }
  for (const auto& [name, live] : unread_) {
    if (live.audited()) steps.insert(live.step());
  }
  return steps.empty() ? 0 : *steps.begin();
}

std::set<std::string> ManifestStore::NeededByRepair() const {
  std::set<std::string> needed;
  AddNeededToGoBack(std::numeric_limits<int64_t>::max(), needed);
  AddNeededToGoBack(audit_floor_, needed);
  return needed;
}

void ManifestStore::AddNeededToGoBack(int64_t found_at, std::set<std::string>& needed) const {
  std::string above;  // the next newer one
  for (auto it = accepted_.rbegin(); it != accepted_.rend(); ++it) {
    const Manifest& manifest = it->second.manifest;
    const std::string newer = std::exchange(above, it->first);
    if (manifest.step() > found_at || !IsAudited(manifest)) continue;
    needed.insert(it->first);
    // Copies of states that workers keep are gone back to only below the first one that is set aside: a later copy may
    // know a best state that goes with it.
    if (rule_.has_value() && !newer.empty()) needed.insert(newer);
    const Evaluations& evaluations = manifest.evaluations();
    const bool has_best = rule_.has_value() && evaluations.rule() == rule_->id && evaluations.best_step() > 0;
    if (has_best) needed.insert(layout::StepName(evaluations.best_step()));
    if (it->second.verified) break;  // an older one is needed where this one may turn out damaged
  }
}

absl::Status ManifestStore::CarryOver(const std::string& name) {
  LS_ASSIGN_OR_RETURN(const CheckpointReader checkpoint, CheckpointReader::Open(hold_.storage(), PathOf(name)));
  if (!IsFormat1(checkpoint)) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const StateDigests digests, DigestFormat1(checkpoint));
  LS_ASSIGN_OR_RETURN(accepted_.at(name).manifest, CarryOverManifest(hold_, checkpoint, digests));
  return absl::OkStatus();
}

absl::StatusOr<std::string> ManifestStore::ReadAgain(const std::string& unread, std::vector<std::string>& messages) {
  const LiveCheckpoint live = unread_.at(unread);
  const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(hold_.storage(), live.prefix());
  if (absl::IsNotFound(reader.status())) {
    // Of a directory that is not mounted for a moment nothing is there.
    LS_RETURN_IF_ERROR(hold_.CheckSamePlace());
    messages.push_back(std::string(reader.status().message()));
    unread_.erase(unread);
    return std::string();
  }
  if (!reader.ok() && !IsDamage(reader.status())) return reader.status();
  std::string name = layout::StepName(live.step());
  if (accepted_.contains(name)) {  // another save of the step counts
    unread_.erase(unread);
    return std::string();
  }
  AcceptedCheckpoint& accepted = accepted_[name];
  accepted.path = live.prefix();
  accepted.pinned = live.pinned();
  unread_.erase(unread);
  std::string objection(reader.status().message());
  if (reader.ok()) {
    accepted.manifest = reader->manifest();
    const bool same =
        IsStateOf(live.state_digest(), accepted.manifest) && live.lineage() == accepted.manifest.lineage();
    if (same) return name;
    objection =
        absl::StrCat("it is another checkpoint than the one that ", hold_.storage().Describe(layout::kLog),
                     " names: state digest ", accepted.manifest.state_digest(), " instead of ", live.state_digest());
  }
  LS_ASSIGN_OR_RETURN(const std::string to, SetAside(name, "bad"));
  messages.push_back(absl::StrCat("set aside ", name, ": ", objection, ". It is now ", hold_.storage().Describe(to)));
  return std::string();
}

absl::StatusOr<std::string> ManifestStore::FindAudited(uint64_t found_at, std::vector<std::string>& messages) {
  const auto before = [found_at](int64_t step) { return static_cast<uint64_t>(step) <= found_at; };
  struct Candidate {
    std::string name;
    bool unread = false;  // the name is a key of unread_
  };
  std::multimap<int64_t, Candidate> by_step;
  for (const auto& [name, checkpoint] : accepted_) {
    const Manifest& manifest = checkpoint.manifest;
    if (before(manifest.step()) && IsAudited(manifest)) by_step.insert({manifest.step(), {name}});
  }
  for (const auto& [name, live] : unread_) {
    if (before(live.step()) && live.audited()) by_step.insert({live.step(), {name, /*unread=*/true}});
  }
  for (auto candidate = by_step.rbegin(); candidate != by_step.rend(); ++candidate) {
    std::string name = candidate->second.name;
    if (candidate->second.unread) {
      LS_ASSIGN_OR_RETURN(name, ReadAgain(name, messages));
      if (name.empty()) continue;
    }
    LS_ASSIGN_OR_RETURN(const bool good, StillGood(name, /*content=*/true, messages));
    if (!good) continue;
    const absl::Status carried = CarryOver(name);
    if (carried.ok()) return name;
    if (!absl::IsDataLoss(carried)) return carried;
    LS_ASSIGN_OR_RETURN(const std::string to, SetAside(name, "bad"));
    messages.push_back(
        absl::StrCat("set aside ", name, ": ", carried.message(), "; it is now ", hold_.storage().Describe(to)));
  }
  return absl::DataLossError(absl::StrCat("no checkpoint up to step ", found_at, " in ",
                                          hold_.storage().Describe(layout::kCheckpoints),
                                          " is audited and verifies: of the others nobody knows whether their state is "
                                          "right. Start again with another --dir"));
}

int64_t ManifestStore::ForgetAbove(int64_t step) {
  const auto first = accepted_.upper_bound(layout::StepName(step));
  const int64_t first_step = first == accepted_.end() ? 0 : first->second.manifest.step();
  for (auto above = first; hold_.in_bucket() && above != accepted_.end(); ++above) {
    forgotten_.push_back(PathOf(above->first));
    set_aside_[forgotten_.back()] = kUnaudited;
  }
  accepted_.erase(first, accepted_.end());
  for (const auto& [name, live] : unread_) {
    if (hold_.in_bucket() && live.step() > step) set_aside_[live.prefix()] = kUnaudited;
  }
  std::erase_if(unread_, [step](const auto& entry) { return entry.second.step() > step; });
  if (!best_.empty() && !accepted_.contains(best_)) best_.clear();
  published_ = accepted_.empty() ? std::string() : accepted_.rbegin()->first;
  return first_step;
}

absl::Status ManifestStore::SetAsideAbove(int64_t step, std::vector<std::string>& messages) {
  std::vector<std::string> above = std::exchange(forgotten_, {});
  if (!hold_.in_bucket()) {
    LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, hold_.storage().List(layout::kCheckpoints));
    for (const DirectoryEntry& entry : entries) {
      if (layout::ParseStepName(entry.name).value_or(step) <= step) continue;
      above.push_back(JoinPath(layout::kCheckpoints, entry.name));
    }
  }
  for (const std::string& path : above) {
    LS_ASSIGN_OR_RETURN(const std::string to, hold_.SetAside(path, kUnaudited));
    messages.push_back(absl::StrCat("set aside ", BaseName(path), ": replicas differed after step ", step,
                                    ", the newest audited one; it is now ", hold_.storage().Describe(to)));
  }
  return hold_.Replace(layout::kLatest, absl::StrCat(BaseName(PathOf(layout::StepName(step))), "\n"));
}

}  // namespace lockstep::chief
