#include "worker/inference/piece_store.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/digest/random_secret.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::worker {
namespace {

constexpr absl::Duration kLook = absl::Milliseconds(50);
constexpr uint64_t kMostAbout = 1 << 16;
constexpr uint64_t kCopyBytes = uint64_t{8} << 20;

// The first line in which they differ.
std::string DifferenceText(const std::string& begun, const std::string& asked) {
  const std::vector<std::string> before = absl::StrSplit(begun, '\n');
  const std::vector<std::string> now = absl::StrSplit(asked, '\n');
  size_t line = 0;
  while (line < before.size() && line < now.size() && before[line] == now[line]) ++line;
  const auto text = [&](const std::vector<std::string>& lines) {
    return line < lines.size() ? lines[line] : "nothing";
  };
  return absl::StrCat("it has ", text(before), ", asked for is ", text(now));
}

absl::Status AppendFile(const Storage& folder, const std::string& path, WritableFile& whole, int64_t& written) {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ReadableFile> file, folder.OpenFile(path));
  std::string bytes;
  for (uint64_t at = 0; at < file->size(); at += bytes.size()) {
    bytes.resize(std::min(kCopyBytes, file->size() - at));
    LS_RETURN_IF_ERROR(file->ReadAt(at, absl::MakeSpan(bytes)));
    LS_RETURN_IF_ERROR(whole.Append(bytes));
  }
  written += static_cast<int64_t>(file->size());
  return absl::OkStatus();
}

}  // namespace

PieceStore::PieceStore(Storage& folder, std::string name, int64_t batches)
    : folder_(&folder),
      name_(std::move(name)),
      parts_(name_ + ".parts"),
      batches_(batches),
      per_piece_((batches + kMostPieces - 1) / kMostPieces),
      pieces_((batches + per_piece_ - 1) / per_piece_) {}

std::string PieceStore::PathOf(int64_t piece) const { return absl::StrFormat("%s/%03d.rows", parts_, piece); }

absl::StatusOr<std::optional<std::unique_ptr<StorageLock>>> PieceStore::TryLock(const std::string& path) {
  absl::StatusOr<std::unique_ptr<StorageLock>> lock = folder_->Lock(path, "another process");
  if (lock.ok()) return std::optional(*std::move(lock));
  if (absl::IsUnimplemented(lock.status())) return std::optional(std::unique_ptr<StorageLock>());
  if (absl::IsFailedPrecondition(lock.status())) return std::nullopt;
  return lock.status();
}

absl::StatusOr<PieceStore> PieceStore::Open(Storage& folder, const std::string& name, const std::string& about,
                                            int64_t batches) {
  PieceStore store(folder, name, batches);
  LS_ASSIGN_OR_RETURN(const bool begun, folder.Exists(store.parts_));
  LS_ASSIGN_OR_RETURN(const bool done, store.HasFile());
  if (done && !begun) {
    return absl::AlreadyExistsError(
        absl::StrCat(folder.Describe(name), " is there already; give another name, or remove it"));
  }
  LS_RETURN_IF_ERROR(store.Begin(about));
  for (int64_t piece = 0; piece < store.pieces_; ++piece) {
    LS_ASSIGN_OR_RETURN(const bool there, folder.Exists(store.PathOf(piece)));
    if (there) ++store.found_;
  }
  return store;
}

absl::Status PieceStore::Begin(const std::string& about) {
  const std::string path = JoinPath(parts_, "about");
  LS_RETURN_IF_ERROR(folder_->CreateDirectories(parts_));
  LS_ASSIGN_OR_RETURN(auto lock, TryLock(path + ".lock"));
  while (!lock.has_value()) {  // another begins it
    absl::SleepFor(kLook);
    LS_ASSIGN_OR_RETURN(lock, TryLock(path + ".lock"));
  }
  const absl::StatusOr<std::string> begun = ReadWholeFile(*folder_, path, kMostAbout);
  if (absl::IsNotFound(begun.status())) {
    return ReplaceFile(*folder_, path + ".partial", path, about, Access::kShared);
  }
  LS_RETURN_IF_ERROR(begun.status());
  if (*begun == about) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(folder_->Describe(parts_), " is the beginning of something else: ", DifferenceText(*begun, about),
                   ". Give another name, or remove that folder"));
}

absl::StatusOr<PieceStore::Taken> PieceStore::Take() {
  bool others = false;
  for (int64_t look = 0; look < pieces_; ++look) {
    const int64_t index = (next_ + look) % pieces_;
    LS_ASSIGN_OR_RETURN(bool there, folder_->Exists(PathOf(index)));
    if (there) continue;
    auto lock = TryLock(absl::StrFormat("%s/%03d.lock", parts_, index));
    if (!lock.ok()) {
      // The folder goes when the file is there.
      LS_ASSIGN_OR_RETURN(const bool done, HasFile());
      if (done) return Taken{.left = Left::kNone, .piece = {}};
      return lock.status();
    }
    if (!lock->has_value()) {
      others = true;
      continue;
    }
    // It may have come between the look and the lock.
    LS_ASSIGN_OR_RETURN(there, folder_->Exists(PathOf(index)));
    if (there) continue;
    next_ = index + 1;
    return Taken{.left = Left::kPiece,
                 .piece = {.index = index,
                           .first_batch = index * per_piece_,
                           .last_batch = std::min(batches_, (index + 1) * per_piece_),
                           .lock = std::move(**lock)}};
  }
  return Taken{.left = others ? Left::kOthers : Left::kNone, .piece = {}};
}

absl::Status PieceStore::Put(const Piece& piece, absl::Span<const std::byte> rows) {
  // Without locks two may write the same.
  LS_ASSIGN_OR_RETURN(const std::string own, RandomSecretHex(8));
  const std::string path = PathOf(piece.index);
  return ReplaceFile(*folder_, absl::StrCat(path, ".", own), path,
                     {reinterpret_cast<const char*>(rows.data()), rows.size()}, Access::kShared);
}

absl::Status PieceStore::Join(absl::string_view header, int64_t bytes) {
  const std::string scratch = JoinPath(parts_, "whole");
  auto lock = TryLock(scratch + ".lock");
  while (lock.ok() && !lock->has_value()) {  // another joins them
    absl::SleepFor(kLook);
    lock = TryLock(scratch + ".lock");
  }
  LS_ASSIGN_OR_RETURN(bool done, HasFile());
  if (!lock.ok()) return done ? absl::OkStatus() : lock.status();
  if (!done) {
    LS_RETURN_IF_ERROR(folder_->RemoveTree(scratch));
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> whole, folder_->CreateFile(scratch, Access::kShared));
    LS_RETURN_IF_ERROR(whole->Append(header));
    int64_t written = 0;
    for (int64_t piece = 0; piece < pieces_; ++piece) {
      LS_RETURN_IF_ERROR(AppendFile(*folder_, PathOf(piece), *whole, written));
    }
    if (written != bytes) {
      return absl::DataLossError(absl::StrCat(folder_->Describe(parts_), " holds ", written, " bytes of predictions, ",
                                              bytes, " are all; remove it and predict again"));
    }
    LS_RETURN_IF_ERROR(whole->Sync());
    LS_RETURN_IF_ERROR(whole->Close());
    LS_RETURN_IF_ERROR(folder_->Replace(scratch, name_));
  }
  // Away at once, so that nobody takes what is half removed for something to go on with.
  const std::string away = parts_ + ".done";
  LS_RETURN_IF_ERROR(folder_->RemoveTree(away));
  const absl::Status moved = folder_->Rename(parts_, away);
  if (!moved.ok()) return absl::IsNotFound(moved) ? absl::OkStatus() : moved;
  return folder_->RemoveTree(away);
}

}  // namespace lockstep::worker
