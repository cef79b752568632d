#include "chief/term/bucket_hold.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/naming.h"
#include "common/digest/random_secret.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxObjectCopyBytes = uint64_t{64} << 20;
constexpr int kNonceBytes = 8;

// The term in the name of the object at `key`: of a save or of a temporary file; nullopt for anything else.
std::optional<int64_t> TermOf(absl::string_view key) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '/');
  if (parts.size() < 2) return std::nullopt;
  if (parts[0] == layout::kStaging) return layout::ParseTermName(parts[1]);
  if (parts[0] != layout::kCheckpoints) return std::nullopt;
  const auto folder = layout::ParseCheckpointFolder(parts[1]);
  return folder.has_value() ? folder->term : std::nullopt;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BucketHold>> BucketHold::Take(BucketStorage& bucket, TermRegistry& registry,
                                                             const TermOwner& owner) {
  LS_ASSIGN_OR_RETURN(const int64_t term, registry.Claim(owner));
  std::unique_ptr<BucketHold> hold(new BucketHold(bucket, registry, term));
  LS_RETURN_IF_ERROR(hold->CheckCurrent());
  return hold;
}

absl::Status BucketHold::Sweep(const CommitRecord& record, std::vector<std::string>& messages) {
  std::set<std::string> named;
  for (const LiveCheckpoint& live : record.live()) named.insert(live.prefix());
  for (const std::string& retired : record.retired()) named.insert(retired);
  for (const SetAsideCheckpoint& aside : record.set_aside()) named.insert(aside.prefix());
  LS_ASSIGN_OR_RETURN(const std::vector<Upload> uploads, bucket_.objects().ListUploads(""));
  std::vector<std::string> left;
  for (const char* directory : {layout::kCheckpoints, layout::kStaging}) {
    LS_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries, bucket_.List(directory));
    for (const DirectoryEntry& entry : entries) {
      std::string path = JoinPath(directory, entry.name);
      if (!named.contains(path) && TermOf(path).value_or(term()) < term()) left.push_back(std::move(path));
    }
  }
  LS_RETURN_IF_ERROR(CheckCurrent());
  for (const Upload& upload : uploads) {
    if (TermOf(upload.key).value_or(term()) >= term()) continue;
    const absl::Status gone = bucket_.objects().AbortUpload(upload);
    if (!gone.ok()) messages.push_back(absl::StrCat("an upload of an earlier chief stays: ", gone.message()));
  }
  for (const std::string& path : left) {
    LS_RETURN_IF_ERROR(CheckCurrent());
    const absl::Status gone = bucket_.RemoveTree(path);
    if (!gone.ok()) {
      messages.push_back(
          absl::StrCat("what an earlier chief left in ", bucket_.Describe(path), " stays: ", gone.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status BucketHold::TakeFreeLock(const TermOwner&) { return absl::OkStatus(); }

absl::StatusOr<std::string> BucketHold::Scratch(absl::string_view hint) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  return JoinPath(layout::StagingPath(term()), absl::StrCat(++scratch_count_, "-", hint));
}

absl::Status BucketHold::EnsureDirectory(absl::string_view) { return absl::OkStatus(); }

absl::StatusOr<std::string> BucketHold::NewCheckpoint(int64_t step, const std::set<std::string>&) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  LS_ASSIGN_OR_RETURN(const std::string nonce, RandomSecretHex(kNonceBytes));
  return layout::BucketCheckpointPath(step, term(), nonce);
}

absl::StatusOr<std::string> BucketHold::PlaceCheckpoint(const std::string& folder, int64_t) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  MutexLock lock(&mutex_);
  placed_.insert(folder);
  return folder;
}

absl::Status BucketHold::Discard(const std::string& folder) {
  {
    MutexLock lock(&mutex_);
    if (placed_.contains(folder)) return absl::OkStatus();
  }
  return bucket_.RemoveTree(folder);
}

absl::Status BucketHold::StoreNew(absl::string_view path, absl::string_view content) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  const absl::Status stored = bucket_.PutNewFile(path, content);
  return absl::IsAlreadyExists(stored) ? stored : Explain(stored);
}

absl::StatusOr<std::string> BucketHold::SetAside(absl::string_view path, absl::string_view why) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  if (ParentPath(path) == layout::kCheckpoints) return std::string(path);
  LS_ASSIGN_OR_RETURN(std::string kept, KeepCopy(path, why));
  LS_RETURN_IF_ERROR(Explain(bucket_.RemoveTree(path)));
  return kept;
}

absl::Status BucketHold::PutBack(absl::string_view name, absl::string_view) {
  return absl::UnimplementedError(absl::StrCat(name, " is not put back: a bucket has no renames"));
}

absl::StatusOr<std::string> BucketHold::KeepCopy(absl::string_view path, absl::string_view why) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  LS_ASSIGN_OR_RETURN(const std::string content, ReadWholeFile(bucket_, path, kMaxObjectCopyBytes));
  const std::string label = absl::StrCat(BaseName(path), "-", why, "-", layout::TermName(term()));
  for (int attempt = 1;; ++attempt) {
    const std::string name = attempt == 1 ? label : absl::StrCat(label, "-", attempt);
    const std::string to = JoinPath(layout::kSetAside, name);
    const absl::Status stored = bucket_.PutNewFile(to, content);
    if (stored.ok()) return to;
    if (!absl::IsAlreadyExists(stored)) return Explain(stored);
  }
}

absl::Status BucketHold::Remove(absl::string_view path) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  LS_ASSIGN_OR_RETURN(const bool there, bucket_.Exists(path));
  if (!there) return absl::NotFoundError(absl::StrCat(bucket_.Describe(path), " is not there"));
  return Explain(bucket_.RemoveTree(path));
}

absl::Status BucketHold::Replace(absl::string_view path, absl::string_view content, Access) {
  LS_RETURN_IF_ERROR(CheckCurrent());
  return Explain(bucket_.PutFile(path, content));
}

}  // namespace lockstep::chief
