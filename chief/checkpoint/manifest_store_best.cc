// Finds the best checkpoint, and the next best when that one is lost.
#include <cmath>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/manifest_store.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxHintBytes = 256;

// What the evaluation of the checkpoint's own step gave by this rule.
std::optional<double> OwnValue(const Manifest& manifest, const EvaluationRule& rule) {
  const Evaluations& evaluations = manifest.evaluations();
  const bool own = evaluations.rule() == rule.id && evaluations.step() == manifest.step() && manifest.step() > 0;
  if (!own || manifest.evaluation_pending() || std::isnan(evaluations.value())) return std::nullopt;
  return evaluations.value();
}

}  // namespace

std::string ManifestStore::BestLeft() const {
  std::string best;
  double value = 0;
  for (const auto& [name, checkpoint] : accepted_) {  // the earliest of equal ones, as evaluations judge
    const std::optional<double> own = rule_.has_value() ? OwnValue(checkpoint.manifest, *rule_) : std::nullopt;
    if (!own.has_value()) continue;
    if (!best.empty() && !(rule_->higher_is_better ? *own > value : *own < value)) continue;
    best = name;
    value = *own;
  }
  return best;
}

absl::StatusOr<bool> ManifestStore::StillGood(const std::string& name, bool content,
                                              std::vector<std::string>& messages) {
  const std::string path = PathOf(name);
  absl::Status status;
  const absl::StatusOr<bool> there = hold_.storage().Exists(path);
  LS_RETURN_IF_ERROR(there.status());
  if (!*there) status = absl::NotFoundError(absl::StrCat(hold_.storage().Describe(path), " is gone"));
  if (status.ok()) {
    const absl::StatusOr<CheckpointReader> reader = CheckpointReader::Open(hold_.storage(), path);
    status = reader.status();
    if (status.ok() && content) status = reader->VerifyContent();
  }
  if (status.ok()) {
    accepted_.at(name).verified = accepted_.at(name).verified || content;
    return true;
  }
  if (absl::IsNotFound(status)) {
    // Of a directory that is not mounted for a moment nothing is there.
    LS_RETURN_IF_ERROR(hold_.CheckSamePlace());
    messages.push_back(std::string(status.message()));
    accepted_.erase(name);
    return false;
  }
  if (!absl::IsDataLoss(status) && !absl::IsInvalidArgument(status) && !absl::IsOutOfRange(status)) return status;
  LS_ASSIGN_OR_RETURN(const std::string to, SetAside(name, "bad"));
  messages.push_back(
      absl::StrCat("set aside ", name, ": ", status.message(), ". It is now ", hold_.storage().Describe(to)));
  return false;
}

absl::Status ManifestStore::HintBest() {
  const std::string content = absl::StrCat(BaseName(PathOf(best_)), "\n");
  if (ReadWholeFile(hold_.storage(), layout::kBest, kMaxHintBytes).value_or("") == content) return absl::OkStatus();
  return hold_.Replace(layout::kBest, content);
}

absl::Status ManifestStore::NameBest(const std::string& name) {
  const bool same = best_ == name && !best_unknown_ && BestInLog() == name;
  best_ = name;
  best_unknown_ = false;
  if (!same) LS_RETURN_IF_ERROR(Record(absl::StrCat(name, " is the best")));
  return HintBest();
}

absl::Status ManifestStore::NameNoBest() {
  best_.clear();
  if (!log_.head().best().empty()) LS_RETURN_IF_ERROR(Record("none is the best"));
  const absl::Status removed = hold_.Remove(layout::kBest);
  return absl::IsNotFound(removed) ? hold_.CheckCurrent() : removed;
}

absl::Status ManifestStore::FindNamedBest(std::vector<std::string>& messages) {
  if (!carries_) {
    const std::string named = BestInLog();
    if (named.empty() || named == best_) return absl::OkStatus();
    messages.push_back(absl::StrCat("the best checkpoint, ", named, ", is lost"));
    return NameNoBest();
  }
  absl::StatusOr<std::string> hint = ReadWholeFile(hold_.storage(), layout::kBest, kMaxHintBytes);
  if (absl::IsNotFound(hint.status())) return absl::OkStatus();
  if (!hint.ok() && !absl::IsDataLoss(hint.status())) return hint.status();
  if (hint.ok()) absl::StripTrailingAsciiWhitespace(&*hint);
  if (hint.ok() && accepted_.contains(*hint)) {
    best_ = *hint;
    return absl::OkStatus();
  }
  best_unknown_ = true;
  messages.push_back(absl::StrCat(hold_.storage().Describe(layout::kBest),
                                  " names no checkpoint that is there: older checkpoints are not removed until an "
                                  "evaluation says which one is the best"));
  return absl::OkStatus();
}

absl::Status ManifestStore::SettleBest(const EvaluationRule& rule, EvaluationLedger& ledger,
                                       std::vector<std::string>& messages) {
  rule_ = rule;
  if (ledger.rule != rule.id || ledger.best_step == 0) return FindNamedBest(messages);
  const std::string wanted = layout::StepName(static_cast<int64_t>(ledger.best_step));
  std::string best = wanted;
  if (!accepted_.contains(wanted)) {
    messages.push_back(absl::StrCat(hold_.storage().Describe(JoinPath(layout::kCheckpoints, wanted)), " is gone"));
    best = BestLeft();
  }
  while (!best.empty()) {
    if (accepted_.at(best).verified) break;
    LS_ASSIGN_OR_RETURN(const bool good, StillGood(best, /*content=*/true, messages));
    if (good) break;
    best = BestLeft();
  }
  if (best == wanted) return NameBest(best);
  std::string lost = absl::StrCat("the best state so far, of step ", ledger.best_step, " with the value ",
                                  ledger.best_value, ", is lost with its checkpoint");
  if (best.empty()) {
    ledger.best_step = 0;
    ledger.best_value = 0;
    messages.push_back(lost + "; none that was evaluated is left, so the next evaluation gives the best one");
    return NameNoBest();
  }
  const Manifest& manifest = accepted_.at(best).manifest;
  ledger.best_step = static_cast<uint64_t>(manifest.step());
  ledger.best_value = manifest.evaluations().value();
  messages.push_back(absl::StrCat(lost, "; the best that is left is step ", ledger.best_step, " with the value ",
                                  ledger.best_value, ", which takes its place"));
  return NameBest(best);
}

absl::StatusOr<std::string> ManifestStore::FindBest(std::vector<std::string>& messages) {
  while (rule_.has_value() && !best_.empty()) {
    if (accepted_.contains(best_)) {
      LS_ASSIGN_OR_RETURN(const bool good, StillGood(best_, /*content=*/false, messages));
      if (good) return OwnValue(accepted_.at(best_).manifest, *rule_).has_value() ? best_ : std::string();
    }
    const std::string next = BestLeft();
    if (next.empty()) {
      LS_RETURN_IF_ERROR(NameNoBest());
    } else {
      LS_RETURN_IF_ERROR(NameBest(next));
    }
  }
  return std::string();
}

}  // namespace lockstep::chief
