// The rows of a prediction on their way to one file: any number of processes compute pieces of it, on any machines that
// share the folder, and any of them may end at any time.
//
//   Open ─▶ Take ─▶ Put ─▶ Take ─▶ ... ─▶ Take gives kNone ─▶ Join
//
// Beside the file NAME lies the folder NAME.parts while it is computed. A piece is a run of batches; its file comes
// there whole. Who computes one holds a lock of it, which ends with the process: then another takes it.
//
// Invariants
//   * NAME is not there before it is whole.
//   * A piece that is there is never computed again, whoever computed it.
//   * All pieces are of one model, one data set and one batch: Open refuses others.
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_WORKER_INFERENCE_PIECE_STORE_H_
#define LOCKSTEP_WORKER_INFERENCE_PIECE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/storage/storage.h"

namespace lockstep::worker {

class PieceStore {
 public:
  // A process that ends loses at most this part of the work.
  static constexpr int64_t kMostPieces = 256;

  struct Piece {
    int64_t index = 0;
    int64_t first_batch = 0;
    int64_t last_batch = 0;             // behind it
    std::unique_ptr<StorageLock> lock;  // null: the storage has none, and pieces may be computed twice
  };

  // Begins the file `name` of `batches` batches in `folder`, which outlives the store, or goes on with it. `about` says
  // in lines of text what is predicted. AlreadyExists: the file is there. FailedPrecondition: what was begun under this
  // name is something else; the message says how it differs.
  static absl::StatusOr<PieceStore> Open(Storage& folder, const std::string& name, const std::string& about,
                                         int64_t batches);

  // The next piece that is missing and that nobody computes.
  enum class Left : uint8_t {
    kPiece,
    kOthers,  // what is missing is being computed by others
    kNone,    // all pieces are there, or the file is
  };
  struct Taken {
    Left left = Left::kNone;
    Piece piece;  // kPiece
  };
  absl::StatusOr<Taken> Take();

  // Stores the rows of a piece, durably.
  absl::Status Put(const Piece& piece, absl::Span<const std::byte> rows);

  // Makes the file of `header` and all pieces, and removes the folder; waits for another that is about it. OK when that
  // was done already. DataLoss: a piece has not the size that it should have. REQUIRES: Take gave kNone.
  absl::Status Join(absl::string_view header, int64_t bytes);

  int64_t pieces() const { return pieces_; }
  // Of the pieces that were there when it was opened.
  int64_t found() const { return found_; }

 private:
  PieceStore(Storage& folder, std::string name, int64_t batches);

  std::string PathOf(int64_t piece) const;
  absl::StatusOr<bool> HasFile() const { return folder_->Exists(name_); }
  absl::Status Begin(const std::string& about);
  // The lock of that name; null where another holds it. Without locks: an optional without a lock.
  absl::StatusOr<std::optional<std::unique_ptr<StorageLock>>> TryLock(const std::string& path);

  Storage* folder_;
  std::string name_;
  std::string parts_;  // the folder
  int64_t batches_;
  int64_t per_piece_;
  int64_t pieces_;
  int64_t found_ = 0;
  int64_t next_ = 0;  // where to look first
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_PIECE_STORE_H_
