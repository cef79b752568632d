#include "worker/kernels/cuda/index_sort.h"

#include <bit>
#include <utility>

#include "common/status/status_macros.h"
#include "worker/device/cuda/runtime/code.h"
#include "worker/device/cuda/runtime/launch.h"

namespace lockstep::device::cuda {
namespace {

constexpr int kDigitBits = 8;
constexpr int kDigits = 1 << kDigitBits;
// Keys that a block takes, as many as the threads of a block in turn.
constexpr int kPiece = 1024;
static_assert(kDigits == kBlock, "a thread for each value of a digit");

int64_t PiecesOf(int64_t rows) { return (rows + kPiece - 1) / kPiece; }

size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

__global__ void KeysKernel(PickMap picks, uint32_t* keys, uint32_t* rows) {
  const int64_t stride = int64_t{gridDim.x} * blockDim.x;
  for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < picks.rows(); row += stride) {
    const int64_t slot = picks.Slot(row);
    keys[row] = static_cast<uint32_t>(slot < 0 ? picks.slots() : slot);
    rows[row] = static_cast<uint32_t>(row);
  }
}

LS_HD inline uint32_t DigitOf(uint32_t key, int shift) { return (key >> shift) & (kDigits - 1); }

// How many keys of piece `blockIdx.x` have each value of the digit.
__global__ void CountKernel(const uint32_t* keys, int64_t count, int shift, uint32_t* counts) {
  __shared__ uint16_t digits[kPiece];
  const int64_t first = int64_t{blockIdx.x} * kPiece;
  const int size = static_cast<int>(count - first < kPiece ? count - first : kPiece);
  for (int i = static_cast<int>(threadIdx.x); i < kPiece; i += kBlock) {
    digits[i] = static_cast<uint16_t>(i < size ? DigitOf(keys[first + i], shift) : kDigits);
  }
  __syncthreads();
  uint32_t own = 0;
  for (int i = 0; i < kPiece; ++i) own += digits[i] == threadIdx.x ? 1 : 0;
  counts[int64_t{blockIdx.x} * kDigits + threadIdx.x] = own;
}

// From counts to the places of each piece's first keys: smaller digits come first, then earlier pieces. One block.
__global__ void PlacesKernel(int64_t pieces, uint32_t* counts) {
  __shared__ uint32_t totals[kDigits];
  uint32_t total = 0;
  for (int64_t piece = 0; piece < pieces; ++piece) total += counts[piece * kDigits + threadIdx.x];
  totals[threadIdx.x] = total;
  __syncthreads();
  uint32_t place = 0;
  for (unsigned digit = 0; digit < threadIdx.x; ++digit) place += totals[digit];
  for (int64_t piece = 0; piece < pieces; ++piece) {
    const uint32_t own = counts[piece * kDigits + threadIdx.x];
    counts[piece * kDigits + threadIdx.x] = place;
    place += own;
  }
}

__global__ void MoveKernel(const uint32_t* keys, const uint32_t* rows, int64_t count, int shift, const uint32_t* places,
                           uint32_t* sorted_keys, uint32_t* sorted_rows) {
  __shared__ uint32_t piece_keys[kPiece];
  __shared__ uint32_t piece_rows[kPiece];
  const int64_t first = int64_t{blockIdx.x} * kPiece;
  const int size = static_cast<int>(count - first < kPiece ? count - first : kPiece);
  for (int i = static_cast<int>(threadIdx.x); i < size; i += kBlock) {
    piece_keys[i] = keys[first + i];
    piece_rows[i] = rows[first + i];
  }
  __syncthreads();
  uint32_t place = places[int64_t{blockIdx.x} * kDigits + threadIdx.x];
  for (int i = 0; i < size; ++i) {
    if (DigitOf(piece_keys[i], shift) != threadIdx.x) continue;
    sorted_keys[place] = piece_keys[i];
    sorted_rows[place] = piece_rows[i];
    ++place;
  }
}

}  // namespace

size_t SortRowsBytes(int64_t rows) {
  return 4 * Aligned(static_cast<size_t>(rows) * sizeof(uint32_t)) +
         static_cast<size_t>(PiecesOf(rows)) * kDigits * sizeof(uint32_t);
}

absl::StatusOr<SortedRows> SortRows(StreamHandle stream, const PickMap& picks, std::byte* workspace) {
  const int64_t count = picks.rows();
  const int64_t pieces = PiecesOf(count);
  const size_t bytes = Aligned(static_cast<size_t>(count) * sizeof(uint32_t));
  const auto part = [&](size_t i) { return reinterpret_cast<uint32_t*>(workspace + i * bytes); };
  uint32_t* keys = part(0);
  uint32_t* rows = part(1);
  uint32_t* other_keys = part(2);
  uint32_t* other_rows = part(3);
  uint32_t* counts = part(4);
  LS_RETURN_IF_ERROR(
      Launch(stream, {.blocks = {BlocksFor(count)}, .threads = {kBlock}}, &KeysKernel, picks, keys, rows));
  const auto grid = static_cast<unsigned>(pieces);
  const int bits = std::bit_width(static_cast<uint32_t>(picks.slots()));
  for (int shift = 0; shift < bits; shift += kDigitBits) {
    LS_RETURN_IF_ERROR(
        Launch(stream, {.blocks = {grid}, .threads = {kBlock}}, &CountKernel, keys, count, shift, counts));
    LS_RETURN_IF_ERROR(Launch(stream, {.blocks = {1}, .threads = {kBlock}}, &PlacesKernel, pieces, counts));
    LS_RETURN_IF_ERROR(Launch(stream, {.blocks = {grid}, .threads = {kBlock}}, &MoveKernel, keys, rows, count, shift,
                              counts, other_keys, other_rows));
    std::swap(keys, other_keys);
    std::swap(rows, other_rows);
  }
  return SortedRows{keys, rows, count, static_cast<uint32_t>(picks.slots())};
}

}  // namespace lockstep::device::cuda
