// Assembles the rows of a prediction into one file. Any number of processes, on machines that share the folder, compute
// pieces of it, and any process may end at any time.
//
//   Open ─▶ Take ─▶ Put ─▶ Take ─▶ ... ─▶ Take gives kNone ─▶ Join
//
// Until the file NAME is complete, its pieces are in the folder NAME.parts beside it. A piece is a run of batches, and
// its file is written atomically. A process that computes a piece holds a lock on it, which is released when the
// process ends; then another process can take the piece.
//
// Invariants
//   * NAME does not exist before it is complete.
//   * A finished piece is never computed again.
//   * All pieces are of the same model, data set and batch size: Open refuses others.
//
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
  // The most pieces of a file: a process that ends loses at most one piece, about 1/256 of the work.
  static constexpr int64_t kMostPieces = 256;

  struct Piece {
    int64_t index = 0;
    int64_t first_batch = 0;
    int64_t last_batch = 0;             // exclusive
    std::unique_ptr<StorageLock> lock;  // null: the storage has no locks, and a piece may be computed twice
  };

  // Begins or continues the file `name` of `batches` batches in `folder`, which outlives the store. `about` describes
  // the prediction in lines of text. AlreadyExists: the file is complete. FailedPrecondition: another prediction was
  // begun under this name; the message says how it differs.
  static absl::StatusOr<PieceStore> Open(Storage& folder, const std::string& name, const std::string& about,
                                         int64_t batches);

  // The state of the file.
  enum class Left : uint8_t {
    kPiece,   // Taken::piece is to be computed
    kOthers,  // other processes compute all missing pieces
    kNone,    // all pieces are done, or the file is
  };
  struct Taken {
    Left left = Left::kNone;
    Piece piece;  // kPiece
  };
  // Takes the next missing piece that no other process computes.
  absl::StatusOr<Taken> Take();

  // Stores the rows of a piece, durably.
  absl::Status Put(const Piece& piece, absl::Span<const std::byte> rows);

  // Writes the file of `header` and all pieces, `bytes` bytes in all, and removes the folder. Waits if another process
  // is doing so. OK if that was done already. DataLoss: a piece has the wrong size. REQUIRES: Take returned kNone.
  absl::Status Join(absl::string_view header, int64_t bytes);

  int64_t pieces() const { return pieces_; }
  // The number of pieces that were finished when the store was opened.
  int64_t found() const { return found_; }

 private:
  PieceStore(Storage& folder, std::string name, int64_t batches);

  std::string PathOf(int64_t piece) const;
  absl::StatusOr<bool> HasFile() const { return folder_->Exists(name_); }
  absl::Status Begin(const std::string& about);
  // The lock at `path`; nullopt if another process holds it; a null lock if the storage has no locks.
  absl::StatusOr<std::optional<std::unique_ptr<StorageLock>>> TryLock(const std::string& path);

  Storage* folder_;
  std::string name_;
  std::string parts_;  // the folder
  int64_t batches_;
  int64_t per_piece_;
  int64_t pieces_;
  int64_t found_ = 0;
  int64_t next_ = 0;  // the first piece that Take tries
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_PIECE_STORE_H_
