#include "chief/checkpoint/recovery.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/checkpoint/accepted_lists.h"
#include "chief/checkpoint/carry_over_manifest.h"
#include "chief/checkpoint/found_mark.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr char kBad[] = "bad";
constexpr char kLate[] = "late";
constexpr char kUnlisted[] = "unlisted";
constexpr char kAbandoned[] = "abandoned";

// Only damage lets a checkpoint be set aside. An error of the place (permissions, a device, a newer format) proves
// nothing.
// A checkpoint that stands there.
struct Found {
  int64_t step = 0;
  std::string path;
  bool listed = true;  // in a bucket: the log has it
};

// What speaks against a checkpoint.
struct Refusal {
  std::string name;
  std::string why;  // one word
  std::string reason;
};

class Scan {
 public:
  Scan(TermHold& hold, JobLog& log, const FoundMark& found)
      : hold_(hold), mark_(found.mark), in_log_(found.in_log), record_(log.head()), lists_(hold) {
    if (!in_log_) return;
    takes_unlisted_ = !log.damage().empty();  // what the damaged record committed is not known
    for (const LiveCheckpoint& live : record_.live()) live_[std::string(BaseName(live.prefix()))] = &live;
    for (const SetAsideCheckpoint& aside : record_.set_aside()) {
      recovered_.checkpoints.set_aside[aside.prefix()] = aside.why();
    }
    for (const std::string& path : record_.retired()) {
      const std::string name(BaseName(path));
      if (!live_.contains(name)) retired_.insert(name);
    }
  }

  absl::StatusOr<Recovered> Run() {
    if (!in_log_) LS_RETURN_IF_ERROR(PutBackMisjudged());
    LS_RETURN_IF_ERROR(JudgeAll());
    if (!recovered_.newest.has_value() && any_unlisted_) LS_RETURN_IF_ERROR(JudgeAgainWithUnlisted());
    recovered_.used_unlisted = takes_unlisted_;
    LS_RETURN_IF_ERROR(CheckSomethingIsLeft());
    for (const Refusal& refusal : refused_) LS_RETURN_IF_ERROR(SetAside(refusal));
    RemoveRetired();
    recovered_.messages.insert(recovered_.messages.end(), lists_.damage().begin(), lists_.damage().end());
    if (!recovered_.newest && mark_ && mark_->step_zero_published()) return NothingLeft();
    LS_RETURN_IF_ERROR(CarryOver());
    // A chief that died between its rename and its sync left what a crash of the machine could still take away.
    LS_RETURN_IF_ERROR(hold_.storage().SyncDirectory(layout::kCheckpoints));
    if (recovered_.newest.has_value()) replaced_.insert(layout::StepName(recovered_.newest->manifest().step()));
    for (const std::string& name : replaced_) {
      if (hold_.in_bucket() || !recovered_.checkpoints.accepted.contains(name)) continue;
      LS_RETURN_IF_ERROR(hold_.storage().SyncDirectory(JoinPath(layout::kCheckpoints, name)));
    }
    return std::move(recovered_);
  }

 private:
  // What a chief before this one took off the log and had no time to remove. What cannot be removed stays for later.
  void RemoveRetired() {
    for (const std::string& name : retired_) {
      if (used_.contains(name)) continue;  // nothing better was left
      const absl::Status removed = hold_.Remove(JoinPath(layout::kCheckpoints, name));
      if (removed.ok() || absl::IsNotFound(removed)) continue;
      recovered_.checkpoints.retired.insert(name);
      recovered_.messages.push_back(absl::StrCat("could not remove ", name, ": ", removed.message()));
    }
  }

  // The job goes on from a manifest of today's format.
  absl::Status CarryOver() {
    if (!recovered_.newest.has_value() || !IsFormat1(*recovered_.newest)) return absl::OkStatus();
    const std::string path = recovered_.newest->path();
    LS_ASSIGN_OR_RETURN(const Manifest manifest, CarryOverManifest(hold_, *recovered_.newest, format_1_digests_));
    recovered_.checkpoints.accepted.at(layout::StepName(manifest.step())).manifest = manifest;
    LS_ASSIGN_OR_RETURN(CheckpointReader reader, CheckpointReader::Open(hold_.storage(), path));
    recovered_.newest.emplace(std::move(reader));
    recovered_.messages.push_back(absl::StrCat("the manifest of ", BaseName(path), " was of format version 1; it is ",
                                               "one of version ", kManifestFormatVersion, " now"));
    return absl::OkStatus();
  }

  absl::Status JudgeAgainWithUnlisted() {
    takes_unlisted_ = true;
    refused_.clear();
    recovered_.checkpoints.accepted.clear();
    used_.clear();
    return JudgeAll();
  }

  // By the log. Nullopt: it has the checkpoint, or the chief that died last published it and had no time to say so.
  std::optional<Refusal> JudgeByLog(const std::string& name, const Manifest& manifest) {
    const auto live = live_.find(name);
    if (live != live_.end()) {
      const bool same =
          IsStateOf(live->second->state_digest(), manifest) && live->second->lineage() == manifest.lineage();
      if (same) {
        const bool replaced = live->second->manifest_sha256() != manifest.manifest_sha256();
        if (replaced) replaced_.insert(name);
        return std::nullopt;
      }
      return Refusal{
          name, kBad,
          absl::StrCat("it is another checkpoint than the one that ", hold_.storage().Describe(layout::kLog),
                       " names: state digest ", manifest.state_digest(), " instead of ", live->second->state_digest())};
    }
    if (takes_unlisted_ || manifest.term() + 1 >= hold_.term()) return std::nullopt;
    any_unlisted_ = true;
    return Refusal{
        name, kUnlisted,
        absl::StrCat(hold_.storage().Describe(layout::kLog), " does not have it: the chief of term ", manifest.term(),
                     " published it after term ", manifest.term() + 1, " had taken over, or somebody put it there")};
  }

  // By the lists of programs without a log.
  absl::StatusOr<std::optional<Refusal>> JudgeByLists(const std::string& name, const Manifest& manifest) {
    LS_ASSIGN_OR_RETURN(const std::optional<int64_t> taken_over, lists_.LateFor(manifest));
    if (!taken_over.has_value()) return std::optional<Refusal>();
    return std::optional(Refusal{name, kLate,
                                 absl::StrCat("the chief of term ", manifest.term(), " published it after term ",
                                              *taken_over, " had taken over")});
  }

  // By what the manifest says alone. Nullopt: nothing speaks against it.
  absl::StatusOr<std::optional<Refusal>> Judge(const std::string& name, const Manifest& manifest) {
    std::optional<Refusal> refused = in_log_ ? JudgeByLog(name, manifest) : std::nullopt;
    if (!in_log_) {
      LS_ASSIGN_OR_RETURN(refused, JudgeByLists(name, manifest));
    }
    if (refused.has_value()) return refused;
    const std::optional<int64_t> parted = mark_ ? PartedAt(manifest, *mark_) : std::nullopt;
    if (parted.has_value() && manifest.step() > *parted) {
      if (*parted == kNothingShared) {
        return Refusal{name, kUnaudited,
                       "replicas of its lineage differed, and nobody knows whether its state is right: it is not "
                       "audited"};
      }
      return Refusal{name, kUnaudited,
                     absl::StrCat("it is of lineage ", manifest.lineage(), ", which ", mark_->lineage(),
                                  " left after step ", *parted, " because replicas differed")};
    }
    if (mark_ && !BelongsTo(manifest, *mark_)) {
      return Refusal{name, kAbandoned,
                     absl::StrCat("it is of job ", manifest.job_id(), " and lineage ", manifest.lineage(),
                                  ", which is not in the history of ", mark_->job_id(), " and ", mark_->lineage())};
    }
    return std::optional<Refusal>();
  }

  // The manifest of a directory when it is intact; nullopt when it is damaged or missing.
  absl::StatusOr<std::optional<Manifest>> IntactManifest(absl::string_view directory) const {
    const std::string path = JoinPath(directory, layout::kManifest);
    const absl::StatusOr<std::string> json = ReadWholeFile(hold_.storage(), path, kMaxManifestBytes);
    if (absl::IsNotFound(json.status()) || IsDamage(json.status())) return std::optional<Manifest>();
    LS_RETURN_IF_ERROR(json.status());
    absl::StatusOr<Manifest> manifest = ParseManifest(*json, hold_.storage().Describe(path));
    if (manifest.ok()) return std::optional<Manifest>(*std::move(manifest));
    if (IsDamage(manifest.status())) return std::optional<Manifest>();
    return manifest.status();
  }

  // The step of the newest checkpoint that nothing in its manifest speaks against; -1: there is none.
  absl::StatusOr<int64_t> NewestInPlace() {
    LS_ASSIGN_OR_RETURN(const auto found, NewestFirst(layout::kCheckpoints, layout::ParseStepName));
    for (const auto& [step, name] : found) {
      LS_ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, IntactManifest(JoinPath(layout::kCheckpoints, name)));
      if (!manifest.has_value() || manifest->step() != step) continue;
      LS_ASSIGN_OR_RETURN(const std::optional<Refusal> refusal, Judge(name, *manifest));
      if (!refusal.has_value()) return step;
    }
    return -1;
  }

  // Moves back what an earlier start took for late or for another history, by a file that was damaged then.
  absl::Status PutBackMisjudged() {
    if (!mark_) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const auto aside, NewestFirst(layout::kSetAside, layout::StepOfSetAside));
    if (aside.empty()) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const int64_t newest, NewestInPlace());
    for (const auto& [step, label] : aside) {
      const std::string name = layout::StepName(step);
      const bool by_judgement = absl::StartsWith(label, absl::StrCat(name, "-", kLate, "-")) ||
                                absl::StartsWith(label, absl::StrCat(name, "-", kAbandoned, "-"));
      if (!by_judgement || step <= newest) continue;
      LS_ASSIGN_OR_RETURN(const std::optional<Manifest> manifest, IntactManifest(JoinPath(layout::kSetAside, label)));
      if (!manifest.has_value() || manifest->step() != step) continue;
      LS_ASSIGN_OR_RETURN(const std::optional<Refusal> refusal, Judge(name, *manifest));
      if (refusal.has_value()) continue;
      const absl::Status moved = hold_.PutBack(label, JoinPath(layout::kCheckpoints, name));
      if (absl::IsAlreadyExists(moved)) continue;
      LS_RETURN_IF_ERROR(moved);
      recovered_.messages.push_back(absl::StrCat("put back ", name, ", which had been set aside as ", label,
                                                 ": it belongs to the history of this job"));
    }
    return absl::OkStatus();
  }

  absl::Status JudgeAll() {
    if (hold_.in_bucket()) return JudgeBucket();
    LS_ASSIGN_OR_RETURN(const auto found, NewestFirst(layout::kCheckpoints, layout::ParseStepName));
    for (const auto& [step, name] : found) {
      if (retired_.contains(name) && !takes_unlisted_) {
        any_unlisted_ = true;
        continue;
      }
      LS_RETURN_IF_ERROR(Look({step, JoinPath(layout::kCheckpoints, name)}));
    }
    return absl::OkStatus();
  }

  absl::Status JudgeBucket() {
    std::vector<Found> found;
    for (const auto& [name, live] : live_) found.push_back({live->step(), live->prefix()});
    if (takes_unlisted_ || !recovered_.checkpoints.set_aside.empty()) {
      LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, hold_.storage().List(layout::kCheckpoints));
      ForgetRemoved(entries);
      for (const DirectoryEntry& entry : entries) {
        if (!takes_unlisted_) break;
        const auto folder = layout::ParseCheckpointFolder(entry.name);
        std::string path = JoinPath(layout::kCheckpoints, entry.name);
        const bool known = live_.contains(entry.name) || recovered_.checkpoints.set_aside.contains(path);
        if (folder.has_value() && !known) found.push_back({folder->step, std::move(path), /*listed=*/false});
      }
    }
    // Of one step what the log has comes first.
    std::stable_sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.step > b.step; });
    for (const Found& checkpoint : found) LS_RETURN_IF_ERROR(Look(checkpoint));
    any_unlisted_ = !takes_unlisted_;
    return absl::OkStatus();
  }

  // Somebody may remove by hand what was set aside.
  void ForgetRemoved(const std::vector<DirectoryEntry>& entries) {
    std::set<std::string> there;
    for (const DirectoryEntry& entry : entries) there.insert(JoinPath(layout::kCheckpoints, entry.name));
    std::erase_if(recovered_.checkpoints.set_aside, [&](const auto& aside) { return !there.contains(aside.first); });
  }

  absl::Status Look(const Found& found) {
    const std::string name(BaseName(found.path));
    const bool again = recovered_.checkpoints.accepted.contains(layout::StepName(found.step));
    if (again) return absl::OkStatus();  // another save of the step
    absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(hold_.storage(), found.path);
    if (!found.listed && IsDamage(reader.status())) return absl::OkStatus();  // it did not become whole
    if (absl::IsNotFound(reader.status())) {
      recovered_.messages.emplace_back(reader.status().message());
      return absl::OkStatus();
    }
    if (MayWait(name, reader.status())) {
      if (const auto live = live_.find(name); live != live_.end()) recovered_.checkpoints.unread[name] = *live->second;
      recovered_.messages.push_back(absl::StrCat("left ", name, " alone: ", reader.status().message()));
      return absl::OkStatus();
    }
    if (!reader.ok()) return RefuseIfDamaged(name, reader.status());
    const Manifest& manifest = reader->manifest();
    LS_ASSIGN_OR_RETURN(const std::optional<Refusal> refusal, Judge(name, manifest));
    if (refusal.has_value()) {
      refused_.push_back(*refusal);
      return absl::OkStatus();
    }
    // The newest good one; older ones when they are needed.
    const bool verify = !recovered_.newest.has_value() || !found.listed;
    if (verify) {
      const absl::Status content = reader->VerifyContent();
      if (!found.listed && IsDamage(content)) return absl::OkStatus();
      if (!content.ok()) return RefuseIfDamaged(name, content);
      if (!recovered_.newest.has_value() && IsFormat1(*reader)) {
        absl::StatusOr<StateDigests> digests = DigestFormat1(*reader);
        if (!digests.ok()) return RefuseIfDamaged(name, digests.status());
        format_1_digests_ = *std::move(digests);
      }
    }
    const auto live = live_.find(name);
    const bool pinned = live != live_.end() && live->second->pinned();
    recovered_.checkpoints.accepted[layout::StepName(found.step)] = {manifest, verify, found.path, pinned};
    used_.insert(name);
    if (!recovered_.newest.has_value()) recovered_.newest.emplace(*std::move(reader));
    return absl::OkStatus();
  }

  // An error of the place proves nothing, and the job goes on without an older checkpoint. The best one would have to
  // be found anew, which nobody could take back.
  bool MayWait(const std::string& name, const absl::Status& status) const {
    if (status.ok() || IsDamage(status) || !recovered_.newest.has_value()) return false;
    return in_log_ && BaseName(record_.best()) != name;
  }

  absl::Status RefuseIfDamaged(const std::string& name, const absl::Status& status) {
    if (!IsDamage(status)) return status;
    refused_.push_back({name, kBad, std::string(status.message())});
    return absl::OkStatus();
  }

  // Where nothing is left although there are intact checkpoints, what speaks against them is rather wrong itself.
  absl::Status CheckSomethingIsLeft() const {
    const bool any_intact =
        std::any_of(refused_.begin(), refused_.end(), [](const Refusal& r) { return r.why != std::string(kBad); });
    if (recovered_.newest.has_value() || !any_intact) return absl::OkStatus();
    return absl::DataLossError(absl::StrCat(
        "no checkpoint in ", hold_.storage().Describe(layout::kCheckpoints), " can be used, and some are intact (",
        Reasons(), "). They are judged by ",
        in_log_ ? hold_.storage().Describe(layout::kLog)
                : absl::StrCat(hold_.storage().Describe(layout::kMark), " and ",
                               hold_.storage().Describe(layout::kChief), "/term-*/accepted.json"),
        ": put the files there back that belong to them, or start again with another --dir; nothing was moved"));
  }

  absl::Status SetAside(const Refusal& refusal) {
    const std::string path = JoinPath(layout::kCheckpoints, refusal.name);
    LS_ASSIGN_OR_RETURN(const std::string to, hold_.SetAside(path, refusal.why));
    if (hold_.in_bucket()) recovered_.checkpoints.set_aside[path] = refusal.why;
    recovered_.messages.push_back(
        absl::StrCat("set aside ", refusal.name, ": ", refusal.reason, ". It is now ", hold_.storage().Describe(to)));
    return absl::OkStatus();
  }

  std::string Reasons() const {
    return absl::StrJoin(refused_, "; ", [](std::string* out, const Refusal& refusal) {
      absl::StrAppend(out, refusal.name, ": ", refusal.reason);
    });
  }

  absl::Status NothingLeft() {
    LS_ASSIGN_OR_RETURN(const auto aside, NewestFirst(layout::kSetAside, layout::StepOfSetAside));
    const std::string place = aside.empty() ? ""
                                            : absl::StrCat(" (", aside.size(), " that were set aside are in ",
                                                           hold_.storage().Describe(layout::kSetAside), ")");
    return absl::DataLossError(absl::StrCat(
        "no checkpoint in ", hold_.storage().Describe(layout::kCheckpoints),
        " verifies, and this job has been trained before", refused_.empty() ? "" : absl::StrCat(" (", Reasons(), ")"),
        ". Put a good one back with `lockstep checkpoint adopt`", place,
        ", or start again with another --dir; training does not restart from random weights by itself"));
  }

  using Steps = std::vector<std::pair<int64_t, std::string>>;

  // The entries of a directory that `step_of` takes for checkpoints.
  absl::StatusOr<Steps> NewestFirst(absl::string_view directory,
                                    std::optional<int64_t> (*step_of)(absl::string_view)) const {
    LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, hold_.storage().List(directory));
    Steps found;
    for (const DirectoryEntry& entry : entries) {
      if (const auto step = step_of(entry.name)) found.emplace_back(*step, entry.name);
    }
    std::sort(found.rbegin(), found.rend());
    return found;
  }

  TermHold& hold_;
  const std::optional<DirectoryMark>& mark_;
  const bool in_log_;
  const CommitRecord record_;
  std::map<std::string, const LiveCheckpoint*> live_;  // of the record, by base name
  std::set<std::string> retired_;                      // of the record, base names
  std::set<std::string> used_;                         // base names of what is accepted
  std::set<std::string> replaced_;                     // names where the log knows another manifest of the same state
  bool takes_unlisted_ = false;
  bool any_unlisted_ = false;
  AcceptedLists lists_;            // of a directory without a log
  StateDigests format_1_digests_;  // of recovered_.newest, where its manifest is of format version 1
  Recovered recovered_;
  std::vector<Refusal> refused_;
};

}  // namespace

absl::StatusOr<Recovered> Recover(TermHold& hold, JobLog& log, const FoundMark& found) {
  return Scan(hold, log, found).Run();
}

}  // namespace lockstep::chief
