#include "worker/inference/piece_store.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;

constexpr char kAbout[] = "model: a\ninputs: b\n";

PieceStore Opened(Storage& folder, int64_t batches, const std::string& about = kAbout) {
  auto store = PieceStore::Open(folder, "y.npy", about, batches);
  REQUIRE(store.status() == absl::OkStatus());
  return *std::move(store);
}

// A batch's "rows" are its number in four digits.
std::string RowsOf(const PieceStore::Piece& piece) {
  std::string rows;
  for (int64_t batch = piece.first_batch; batch < piece.last_batch; ++batch) {
    absl::StrAppend(&rows, absl::Dec(batch, absl::kZeroPad4));
  }
  return rows;
}

absl::Status Put(PieceStore& store, const PieceStore::Piece& piece) {
  const std::string rows = RowsOf(piece);
  return store.Put(piece, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(rows.data()), rows.size()));
}

// Computes what is left, until nobody has anything to do.
void Finish(PieceStore& store) {
  while (true) {
    const auto taken = store.Take();
    REQUIRE(taken.status() == absl::OkStatus());
    if (taken->left != PieceStore::Left::kPiece) break;
    REQUIRE(Put(store, taken->piece) == absl::OkStatus());
  }
}

std::string AllRows(int64_t batches) {
  PieceStore::Piece all;
  all.last_batch = batches;
  return RowsOf(all);
}

std::string FileIn(const Storage& folder) { return *ReadWholeFile(folder, "y.npy", 1 << 20); }

}  // namespace

TEST_CASE("piece store: the pieces of one process become the file in the order of the batches", "[inference]") {
  const int64_t batches = GENERATE(1, 2, 255, 256, 257, 1000);
  MemoryStorage folder;
  PieceStore store = Opened(folder, batches);
  CHECK(store.pieces() <= PieceStore::kMostPieces);

  Finish(store);
  CHECK(*folder.Exists("y.npy") == false);
  REQUIRE(store.Join("head", batches * 4) == absl::OkStatus());

  CHECK(FileIn(folder) == "head" + AllRows(batches));
  CHECK(folder.List("")->size() == 1);
}

TEST_CASE("piece store: processes never compute the same piece, and one that ends leaves its piece to others",
          "[inference]") {
  MemoryStorage folder;
  PieceStore first = Opened(folder, 3);
  PieceStore second = Opened(folder, 3);
  auto one = *first.Take();
  auto two = *second.Take();
  auto three = *first.Take();
  CHECK(std::set<int64_t>{one.piece.index, two.piece.index, three.piece.index} == std::set<int64_t>{0, 1, 2});
  CHECK(second.Take()->left == PieceStore::Left::kOthers);

  REQUIRE(Put(first, one.piece) == absl::OkStatus());
  three = {};  // its process ends
  const auto again = *second.Take();
  REQUIRE(again.left == PieceStore::Left::kPiece);
  CHECK(again.piece.index == 2);
  REQUIRE(Put(second, again.piece) == absl::OkStatus());
  CHECK(first.Take()->left == PieceStore::Left::kOthers);
  REQUIRE(Put(second, two.piece) == absl::OkStatus());
  CHECK(first.Take()->left == PieceStore::Left::kNone);

  REQUIRE(second.Join("", 12) == absl::OkStatus());
  CHECK(FileIn(folder) == AllRows(3));
  // The other finds it done.
  CHECK(first.Take()->left == PieceStore::Left::kNone);
  CHECK(first.Join("", 12) == absl::OkStatus());
  CHECK(FileIn(folder) == AllRows(3));
}

TEST_CASE("piece store: it goes on with what is there, of the same model and data only", "[inference]") {
  MemoryStorage folder;
  {
    PieceStore store = Opened(folder, 300);
    for (int i = 0; i < 5; ++i) {
      const auto taken = *store.Take();
      REQUIRE(Put(store, taken.piece) == absl::OkStatus());
    }
  }
  const auto other = PieceStore::Open(folder, "y.npy", "model: a\ninputs: c\n", 300);
  CHECK(other.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(other.status().message()), Contains("it has inputs: b, asked for is inputs: c"));

  PieceStore store = Opened(folder, 300);
  CHECK(store.found() == 5);
  Finish(store);
  REQUIRE(store.Join("", 1200) == absl::OkStatus());
  CHECK(FileIn(folder) == AllRows(300));
  CHECK(PieceStore::Open(folder, "y.npy", kAbout, 300).status().code() == absl::StatusCode::kAlreadyExists);
}

// Predicts all, as far as the place lets it; whether the file was finished.
bool Predict(Storage& folder, int64_t batches) {
  auto store = PieceStore::Open(folder, "y.npy", kAbout, batches);
  if (!store.ok()) return false;
  while (true) {
    const auto taken = store->Take();
    if (!taken.ok()) return false;
    if (taken->left != PieceStore::Left::kPiece) break;
    if (!Put(*store, taken->piece).ok()) return false;
  }
  return store->Join("h", batches * 4).ok();
}

TEST_CASE("piece store: whatever fails and whenever, the next run finishes the file or finds it whole", "[inference]") {
  const auto kind =
      GENERATE(StorageFaults::Kind::kDiskFull, StorageFaults::Kind::kIoError, StorageFaults::Kind::kCrash);
  const auto survival =
      GENERATE(MemoryStorage::Survival::kNothing, MemoryStorage::Survival::kEverything, MemoryStorage::Survival::kSome);
  bool finished = false;
  for (int64_t operation = 0; !finished; ++operation) {
    INFO("after " << operation << " operations");
    REQUIRE(operation < 1000);
    MemoryStorage folder;
    folder.SetFaults({.at = {{operation, kind}}});
    finished = Predict(folder, 4) && folder.operations() <= operation;
    folder.Restart(survival, static_cast<uint64_t>(operation));

    if (*folder.Exists("y.npy")) CHECK(FileIn(folder) == "h" + AllRows(4));
    const bool whole = *folder.Exists("y.npy") && !*folder.Exists("y.npy.parts");
    CHECK((whole || Predict(folder, 4)));
    CHECK(FileIn(folder) == "h" + AllRows(4));
  }
}

}  // namespace lockstep::worker
