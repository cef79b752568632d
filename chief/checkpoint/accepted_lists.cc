#include "chief/checkpoint/accepted_lists.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/manifest.h"
#include "common/checkpoint_format/naming.h"
#include "common/checkpoint_format/sealed.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr char kAcceptedFile[] = "accepted.json";
constexpr uint64_t kMaxAcceptedBytes = 64u << 20;
constexpr int kNoFormat = 0;  // these lists have no version

// Whether the chief of this list knew the checkpoint, or came after it: an evaluation that is written behind changes a
// manifest's own digest, and a step below the newest of the list is of the past that the list stands on.
bool Covers(const AcceptedManifests& list, const Manifest& manifest) {
  int64_t newest = -1;
  for (const AcceptedManifest& accepted : list.manifests()) {
    const int64_t step = layout::ParseStepName(accepted.directory()).value_or(-1);
    const bool same_state = accepted.state_digest().empty() || IsStateOf(accepted.state_digest(), manifest);
    if (accepted.manifest_sha256() == manifest.manifest_sha256()) return true;
    if (step == manifest.step()) return same_state;
    newest = std::max(newest, step);
  }
  return manifest.step() < newest;
}

}  // namespace

absl::StatusOr<const AcceptedManifests*> AcceptedLists::ListOf(int64_t term) {
  const auto [at, is_new] = lists_.try_emplace(term);
  if (is_new) {
    const std::string path = JoinPath(layout::TermPath(term), kAcceptedFile);
    const absl::StatusOr<std::string> json = ReadWholeFile(hold_.storage(), path, kMaxAcceptedBytes);
    if (!json.ok() && !absl::IsNotFound(json.status()) && !absl::IsDataLoss(json.status())) return json.status();
    AcceptedManifests list;
    const absl::Status read =
        json.ok() ? ReadSealedJson(*json, hold_.storage().Describe(path), kNoFormat, &list) : json.status();
    if (read.ok()) at->second = std::move(list);
    if (absl::IsDataLoss(read)) damage_.push_back(absl::StrCat(read.message(), "; it is not used"));
  }
  return at->second.has_value() ? &*at->second : nullptr;
}

absl::StatusOr<std::optional<int64_t>> AcceptedLists::LateFor(const Manifest& manifest) {
  for (int64_t term = manifest.term() + 1; term < hold_.term(); ++term) {
    LS_ASSIGN_OR_RETURN(const AcceptedManifests* const list, ListOf(term));
    if (list == nullptr) continue;
    return Covers(*list, manifest) ? std::nullopt : std::optional<int64_t>(term);
  }
  return std::optional<int64_t>();
}

}  // namespace lockstep::chief
