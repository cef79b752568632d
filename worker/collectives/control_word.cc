#include "worker/collectives/control_word.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/arithmetic/bucketer.h"

namespace lockstep::worker {
namespace {

constexpr size_t kAuditBytes = 32;
// Generation, step, attempt with the two flags and the audit's presence, requests, audit.
constexpr size_t kHeadWords = 4 + kRequestKinds;
constexpr size_t kHeadBytes = kHeadWords * sizeof(uint64_t) + kAuditBytes;

// Blocks are whole 64-bit words in host order: a generation's members share one architecture (the kernel plan).
class Writer {
 public:
  explicit Writer(char* at) : at_(at) {}
  void Put(uint64_t word) { PutBytes(&word, sizeof(word)); }
  void PutBytes(const void* bytes, size_t n) {
    if (n != 0) std::memcpy(at_, bytes, n);
    at_ += n;
  }

 private:
  char* at_;
};

class Reader {
 public:
  explicit Reader(const char* at) : at_(at) {}
  uint64_t Take() {
    uint64_t word;
    TakeBytes(&word, sizeof(word));
    return word;
  }
  void TakeBytes(void* bytes, size_t n) {
    if (n != 0) std::memcpy(bytes, at_, n);
    at_ += n;
  }

 private:
  const char* at_;
};

std::vector<int> ShardsOfRank(const WordShape& shape, int rank) {
  if (!shape.shards.empty()) return shape.shards[static_cast<size_t>(rank)];
  const ShardRange range = ShardsOf(rank, shape.ranks, shape.logical_shards);
  std::vector<int> shards(static_cast<size_t>(range.last - range.first));
  std::iota(shards.begin(), shards.end(), range.first);
  return shards;
}

size_t SlotsOfRank(const WordShape& shape, int rank) {
  return ShardsOfRank(shape, rank).size() * static_cast<size_t>(shape.slots_per_shard);
}

size_t MagnitudeBytes(const WordShape& shape) {
  return (static_cast<size_t>(shape.tensors) + 1) / 2 * sizeof(uint64_t);
}

absl::Status CheckFence(const WordShape& shape, int rank, Generation generation, Tag tag, Tag expected) {
  if (generation == shape.generation && tag == expected) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("rank ", rank, " sent a control word of generation ", generation.ToString(),
                                          ", step ", tag.step, ", attempt ", tag.attempt, "; expected generation ",
                                          shape.generation.ToString(), ", step ", expected.step, ", attempt ",
                                          expected.attempt, ", as rank 0 sent"));
}

}  // namespace

std::vector<int64_t> WordBlockBytes(const WordShape& shape) {
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    bytes.push_back(
        static_cast<int64_t>(kHeadBytes + MagnitudeBytes(shape) + SlotsOfRank(shape, rank) * sizeof(uint64_t)));
  }
  return bytes;
}

absl::Status PackWord(const WordShape& shape, int rank, const RankWord& word, absl::Span<char> blocks) {
  const std::vector<int64_t> bytes = WordBlockBytes(shape);
  LS_CHECK(0 <= rank && rank < shape.ranks, "the rank is of the generation");
  int64_t offset = 0;
  int64_t total = 0;
  for (int r = 0; r < shape.ranks; ++r) {
    if (r < rank) offset += bytes[r];
    total += bytes[r];
  }
  if (static_cast<int64_t>(blocks.size()) != total || word.magnitudes.size() != static_cast<size_t>(shape.tensors) ||
      word.slots.size() != SlotsOfRank(shape, rank) || (!word.audit.empty() && word.audit.size() != kAuditBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the control word of rank ", rank, " has ", word.magnitudes.size(), " magnitudes, ",
                     word.slots.size(), " slots, ", word.audit.size(), " bytes of digest in ", blocks.size(),
                     " bytes; expected ", shape.tensors, ", ", SlotsOfRank(shape, rank), ", 0 or 32, ", total));
  }
  std::memset(blocks.data() + offset, 0, static_cast<size_t>(bytes[rank]));
  Writer out(blocks.data() + offset);
  out.Put(shape.generation.term);
  out.Put(shape.generation.counter);
  out.Put(static_cast<uint64_t>(word.tag.step));
  out.Put(static_cast<uint64_t>(word.tag.attempt) << 8 | (word.control.free_to_save ? 1u : 0u) |
          (word.control.hears_chief ? 2u : 0u) | (word.audit.empty() ? 0u : 4u));
  for (uint64_t request : word.control.requests) out.Put(request);
  std::vector<uint8_t> audit = word.audit;
  audit.resize(kAuditBytes);
  out.PutBytes(audit.data(), audit.size());
  std::vector<uint32_t> magnitudes = word.magnitudes;
  magnitudes.resize(MagnitudeBytes(shape) / sizeof(uint32_t));
  out.PutBytes(magnitudes.data(), magnitudes.size() * sizeof(uint32_t));
  out.PutBytes(word.slots.data(), word.slots.size() * sizeof(uint64_t));
  return absl::OkStatus();
}

absl::StatusOr<ReducedWord> FoldWords(const WordShape& shape, absl::Span<const char> blocks) {
  const std::vector<int64_t> bytes = WordBlockBytes(shape);
  ReducedWord reduced;
  reduced.magnitudes.resize(static_cast<size_t>(shape.tensors));
  const auto row = static_cast<size_t>(shape.slots_per_shard);
  reduced.slots.resize(static_cast<size_t>(shape.logical_shards) * row);
  int64_t offset = 0;
  for (int rank = 0; rank < shape.ranks; ++rank) {
    if (offset + bytes[rank] > static_cast<int64_t>(blocks.size())) {
      return absl::InternalError(absl::StrCat("the control words have ", blocks.size(), " bytes; rank ", rank,
                                              "'s ends at ", offset + bytes[rank]));
    }
    Reader in(blocks.data() + offset);
    offset += bytes[rank];
    Generation generation;
    generation.term = in.Take();
    generation.counter = in.Take();
    Tag tag;
    tag.step = static_cast<int64_t>(in.Take());
    const uint64_t flags = in.Take();
    tag.attempt = static_cast<uint32_t>(flags >> 8);
    if (rank == 0) reduced.tag = tag;
    LS_RETURN_IF_ERROR(CheckFence(shape, rank, generation, tag, reduced.tag));
    ControlContribution control;
    control.free_to_save = (flags & 1) != 0;
    control.hears_chief = (flags & 2) != 0;
    for (uint64_t& request : control.requests) request = in.Take();
    reduced.control.slots.push_back(control);
    std::vector<uint8_t> audit(kAuditBytes);
    in.TakeBytes(audit.data(), audit.size());
    if ((flags & 4) == 0) audit.clear();
    reduced.audits.push_back(std::move(audit));
    std::vector<uint32_t> magnitudes(MagnitudeBytes(shape) / sizeof(uint32_t));
    in.TakeBytes(magnitudes.data(), magnitudes.size() * sizeof(uint32_t));
    for (size_t t = 0; t < reduced.magnitudes.size(); ++t) {
      reduced.magnitudes[t] = std::max(reduced.magnitudes[t], magnitudes[t]);
    }
    for (const int shard : ShardsOfRank(shape, rank)) {
      in.TakeBytes(reduced.slots.data() + static_cast<size_t>(shard) * row, row * sizeof(uint64_t));
    }
  }
  return reduced;
}

uint64_t SlotOf(double value) { return std::bit_cast<uint64_t>(value); }
uint64_t SlotOf(float value) { return std::bit_cast<uint32_t>(value); }
double DoubleOf(uint64_t slot) { return std::bit_cast<double>(slot); }
float FloatOf(uint64_t slot) { return std::bit_cast<float>(static_cast<uint32_t>(slot)); }

double SumSlots(const WordShape& shape, const ReducedWord& word, int slot) {
  double sum = 0;
  for (int shard = 0; shard < shape.logical_shards; ++shard) {
    sum += DoubleOf(word.slots[static_cast<size_t>(shard) * static_cast<size_t>(shape.slots_per_shard) +
                               static_cast<size_t>(slot)]);
  }
  return sum;
}

}  // namespace lockstep::worker
