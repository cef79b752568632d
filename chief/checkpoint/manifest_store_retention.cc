// What is let go: by the rule, for room, by hand.
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/manifest_store.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

absl::StatusOr<std::vector<std::string>> ManifestStore::Superfluous() const {
  if (best_unknown_) return std::vector<std::string>();
  LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, hold_.storage().List(layout::kCheckpoints));
  std::set<std::string> there;
  for (const DirectoryEntry& entry : entries) there.insert(entry.name);
  const std::set<std::string> needed = NeededByRepair();
  std::vector<RetentionCandidate> candidates;
  for (const auto& [name, checkpoint] : accepted_) {
    candidates.push_back({.name = name,
                          .step = checkpoint.manifest.step(),
                          .trained_ms = checkpoint.manifest.trained_ms(),
                          .verified = checkpoint.verified,
                          .stands = there.contains(std::string(BaseName(PathOf(name)))),
                          .needed = checkpoint.pinned || name == best_ || name == published_ || needed.contains(name)});
  }
  return ToRetire(candidates, retention_);
}

absl::Status ManifestStore::RecordWithout(const std::vector<std::string>& names, absl::string_view what) {
  const std::set<std::string> retired_before = retired_;
  AcceptedCheckpoints without;
  for (const std::string& name : names) {
    retired_.emplace(BaseName(PathOf(name)));
    without.insert(accepted_.extract(name));
  }
  const absl::Status recorded = Record(what);
  if (recorded.ok()) return recorded;
  retired_ = retired_before;
  accepted_.merge(without);
  return recorded;
}

absl::Status ManifestStore::MakeRoom(std::vector<std::string>& messages) {
  const auto verified = [this] {
    return std::count_if(accepted_.begin(), accepted_.end(), [](const auto& entry) { return entry.second.verified; });
  };
  std::set<std::string> tried;
  while (verified() < retention_.keep_latest) {
    const std::string name = NextUnverified();
    if (name.empty() || !tried.insert(name).second) break;
    const absl::Status read = StillGood(name, /*content=*/true, messages).status();
    if (read.ok()) continue;
    messages.push_back(absl::StrCat(name, " was not read through: ", read.message()));
    Postpone(name);
  }
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> superfluous, Superfluous());
  if (superfluous.empty() && retired_.empty()) return absl::OkStatus();
  LS_RETURN_IF_ERROR(RecordWithout(superfluous, "room for a save"));
  return RemoveRetired(messages);
}

absl::Status ManifestStore::RemoveRetired(std::vector<std::string>& messages) {
  while (!retired_.empty()) {
    const std::string path = JoinPath(layout::kCheckpoints, *retired_.begin());
    const absl::Status removed = hold_.Remove(path);
    if (!removed.ok()) {
      LS_RETURN_IF_ERROR(hold_.CheckSamePlace());
      LS_ASSIGN_OR_RETURN(const bool there, hold_.storage().Exists(path));
      if (there) return removed;
      const bool by_hand = absl::IsNotFound(removed);
      if (by_hand || !hold_.in_bucket())
        messages.push_back(by_hand ? absl::StrCat(hold_.storage().Describe(path), " is gone: it was removed by hand")
                                   : absl::StrCat("what is left of ", path, " goes later: ", removed.message()));
    }
    retired_.erase(retired_.begin());
  }
  return absl::OkStatus();
}

// What retention let go and could not remove may stand under the name of a step that is computed again.
absl::Status ManifestStore::FreeName(const std::string& name) {
  if (!retired_.contains(name)) return absl::OkStatus();
  if (!recorded_) LS_RETURN_IF_ERROR(Record(absl::StrCat(name, " retired")));
  const absl::Status removed = hold_.Remove(JoinPath(layout::kCheckpoints, name));
  if (!absl::IsNotFound(removed)) LS_RETURN_IF_ERROR(removed);
  retired_.erase(name);
  return absl::OkStatus();
}

std::string ManifestStore::WhyItStays(const std::string& name) const {
  if (accepted_.at(name).pinned) return "it is pinned: `lockstep checkpoint unpin` first";
  if (name == accepted_.rbegin()->first || name == published_) {
    return "it is the newest one, from which the job goes on";
  }
  if (name == best_ || best_unknown_) return "it is the best one, or may be: checkpoint.keep_best keeps that";
  if (NeededByRepair().contains(name))
    return "it is where the job would go back to if an audit found replicas to differ";
  return "";
}

absl::StatusOr<std::string> ManifestStore::Change(CheckpointChange change, int64_t step) {
  const std::string name = layout::StepName(step);
  const auto found = accepted_.find(name);
  if (found == accepted_.end()) {
    return absl::NotFoundError(absl::StrCat("no checkpoint of step ", step, " in ",
                                            hold_.storage().Describe(layout::kCheckpoints),
                                            " counts; `lockstep checkpoint ls` shows those that do"));
  }
  if (change != CheckpointChange::kRemove) {
    const bool pin = change == CheckpointChange::kPin;
    const std::string done = absl::StrCat(name, pin ? " is pinned" : " is not pinned");
    if (found->second.pinned == pin && recorded_) return absl::StrCat(done, " already");
    found->second.pinned = pin;
    LS_RETURN_IF_ERROR(Record(done));
    return absl::StrCat(done, pin ? ": retention leaves it" : ": retention may remove it at the next save");
  }
  if (const std::string why = WhyItStays(name); !why.empty()) {
    return absl::FailedPreconditionError(absl::StrCat(name, " is not removed: ", why));
  }
  LS_RETURN_IF_ERROR(RecordWithout({name}, absl::StrCat(name, " removed by hand")));
  std::vector<std::string> messages;
  const absl::Status removed = RemoveRetired(messages);
  if (!removed.ok()) messages.push_back(absl::StrCat("its files go later: ", removed.message()));
  return absl::StrCat(name, " is removed", messages.empty() ? "" : "; ", absl::StrJoin(messages, "; "));
}

}  // namespace lockstep::chief
