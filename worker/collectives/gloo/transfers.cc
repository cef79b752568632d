#include "worker/collectives/gloo/transfers.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "worker/collectives/bucketer.h"
#include "worker/collectives/exact_sum.h"

namespace lockstep::worker {
namespace {

// A block travels in pieces, so that summing, converting and forwarding one overlaps with the next. A message costs
// some 40 us of CPU, so pieces are few: as many as a window holds, unless they would be tiny or huge.
constexpr int64_t kLeastPieceElements = 32 * 1024;
// Pieces that may be on their way to a rank before it has summed earlier ones.
constexpr int64_t kWindow = 4;
// Up to here one hop with more bytes beats two hops with fewer.
constexpr size_t kSmallBytes = 32 * 1024;
constexpr size_t kBroadcastPieceBytes = 512 * 1024;

enum class Phase : uint64_t { kReduce = 1, kGather = 2 };

// Sequence, step, attempt, kind and phase: transfers match only between ranks that are in the same call.
uint64_t SlotOf(const Call& call, Phase phase) {
  return (call.sequence & 0xffffffffu) << 32 | (static_cast<uint64_t>(call.tag.step) & 0xffffu) << 16 |
         static_cast<uint64_t>(call.tag.attempt & 0xffu) << 8 | static_cast<uint64_t>(call.kind) << 4 |
         static_cast<uint64_t>(phase);
}

// Cut by its size alone, so in the same way on every rank.
struct Block {
  int64_t offset = 0;
  int64_t size = 0;
  int64_t piece_size = 0;
  int64_t pieces = 0;
};

std::vector<Block> BlocksOf(const std::vector<int64_t>& sizes, int64_t most_elements) {
  std::vector<Block> blocks;
  int64_t offset = 0;
  for (int64_t size : sizes) {
    const int64_t piece_size = std::min(most_elements, std::max(kLeastPieceElements, (size + kWindow - 1) / kWindow));
    blocks.push_back({offset, size, piece_size, (size + piece_size - 1) / piece_size});
    offset += size;
  }
  return blocks;
}

FlatRange PieceOf(const Block& block, int64_t piece) {
  const int64_t begin = piece * block.piece_size;
  return {block.offset + begin, std::min(block.piece_size, block.size - begin)};
}

// The other ranks in staggered order, so that not everybody begins with rank 0.
std::vector<int> PeersOf(const Mesh& mesh) {
  std::vector<int> peers;
  for (int k = 1; k < mesh.size(); ++k) peers.push_back((mesh.rank() + k) % mesh.size());
  return peers;
}

// Gathers blocks in place: receives stand from the beginning, pieces of the own block are sent as they become ready.
class Gather {
 public:
  Gather(Mesh& mesh, const Call& call, char* bytes, size_t element_bytes, std::vector<Block> blocks)
      : mesh_(mesh),
        slot_(SlotOf(call, Phase::kGather)),
        element_bytes_(element_bytes),
        blocks_(std::move(blocks)),
        peers_(PeersOf(mesh)),
        outgoing_(mesh, bytes, Bytes(blocks_.back().offset + blocks_.back().size)) {
    for (size_t p = 0; p < peers_.size(); ++p) {
      incoming_.emplace_back(mesh, bytes, Bytes(blocks_.back().offset + blocks_.back().size));
    }
  }

  absl::Status PostReceives() {
    for (size_t p = 0; p < peers_.size(); ++p) {
      const Block& block = blocks_[static_cast<size_t>(peers_[p])];
      for (int64_t piece = 0; piece < block.pieces; ++piece) {
        const FlatRange range = PieceOf(block, piece);
        LS_RETURN_IF_ERROR(incoming_[p].Receive(peers_[p], slot_, Bytes(range.offset), Bytes(range.size)));
      }
    }
    return absl::OkStatus();
  }

  absl::Status SendPiece(int64_t piece) {
    const FlatRange range = PieceOf(own(), piece);
    for (const int peer : peers_) {
      LS_RETURN_IF_ERROR(outgoing_.Send(peer, slot_, Bytes(range.offset), Bytes(range.size)));
    }
    return absl::OkStatus();
  }

  absl::Status SendAll() {
    for (int64_t piece = 0; piece < own().pieces; ++piece) LS_RETURN_IF_ERROR(SendPiece(piece));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    for (size_t p = 0; p < peers_.size(); ++p) {
      const NowDoing gathering("gathering from ", mesh_.NameOf(peers_[p]));
      for (int64_t piece = 0; piece < blocks_[static_cast<size_t>(peers_[p])].pieces; ++piece) {
        LS_RETURN_IF_ERROR(incoming_[p].AwaitReceive());
      }
    }
    return outgoing_.AwaitAllSends();
  }

 private:
  const Block& own() const { return blocks_[static_cast<size_t>(mesh_.rank())]; }
  size_t Bytes(int64_t elements) const { return static_cast<size_t>(elements) * element_bytes_; }

  Mesh& mesh_;
  const uint64_t slot_;
  const size_t element_bytes_;
  const std::vector<Block> blocks_;
  const std::vector<int> peers_;
  std::vector<Region> incoming_;  // by place in peers_: each is awaited by itself, and named while it is
  Region outgoing_;
};

// own += all others, in rank order where the order matters. sources[r] is null for the own rank.
void SumPiece(const std::vector<int64_t*>& sources, absl::Span<int64_t> own) {
  for (const int64_t* source : sources) {
    if (source != nullptr) AddInto(absl::MakeConstSpan(source, own.size()), own);
  }
}

void SumPiece(const std::vector<float*>& sources, absl::Span<float> own) {
  constexpr size_t kTile = 256;
  float tile[kTile];
  for (size_t begin = 0; begin < own.size(); begin += kTile) {
    const size_t n = std::min(kTile, own.size() - begin);
    for (size_t r = 0; r < sources.size(); ++r) {
      const float* source = (sources[r] != nullptr ? sources[r] : own.data()) + begin;
      for (size_t i = 0; i < n; ++i) tile[i] = r == 0 ? source[i] : tile[i] + source[i];
    }
    std::copy_n(tile, n, own.data() + begin);
  }
}

}  // namespace

absl::Status Transfers::Run(const Call& call) {
  switch (call.kind) {
    case CallKind::kReduceScatterSum:
      return ReduceScatter(call);
    case CallKind::kAllGather:
      return AllGather(call);
    case CallKind::kReduceConvertGather:
      return ReduceConvertGather(call);
    case CallKind::kAllReduceSumInt64:
      return AllReduce(call, call.integers);
    case CallKind::kAllReduceSumFloat:
      return AllReduce(call, call.floats);
    case CallKind::kBroadcast:
      return Broadcast(call);
  }
  return absl::InternalError("a call of no kind");
}

template <typename T>
T* Transfers::Scratch(size_t elements) {
  const size_t words = (elements * sizeof(T) + sizeof(int64_t) - 1) / sizeof(int64_t);
  if (scratch_.size() < words) scratch_.resize(words);
  return reinterpret_cast<T*>(scratch_.data());
}

absl::Status Transfers::AllGather(const Call& call) {
  // Nothing to overlap with: large pieces.
  Gather gather(mesh_, call, call.bytes.data(), 1, BlocksOf(call.blocks, most_elements_ * 8));
  LS_RETURN_IF_ERROR(gather.PostReceives());
  LS_RETURN_IF_ERROR(gather.SendAll());
  return gather.Finish();
}

template <typename T>
absl::Status Transfers::ExchangePieces(const Call& call, absl::Span<const T> values, const std::vector<int64_t>& sizes,
                                       PieceCame<T> came) {
  const uint64_t slot = SlotOf(call, Phase::kReduce);
  const std::vector<int> peers = PeersOf(mesh_);
  const std::vector<Block> blocks = BlocksOf(sizes, most_elements_);
  const Block& own = blocks[static_cast<size_t>(mesh_.rank())];

  // For each peer a ring of kWindow pieces.
  const auto ring = static_cast<size_t>(kWindow * own.piece_size);
  T* const scratch = Scratch<T>(peers.size() * ring);
  std::vector<Region> incoming;
  for (size_t p = 0; p < peers.size(); ++p) incoming.emplace_back(mesh_, scratch + p * ring, ring * sizeof(T));
  const auto receive = [&](int64_t piece) -> absl::Status {
    if (piece >= own.pieces) return absl::OkStatus();
    const size_t offset = static_cast<size_t>(piece % kWindow * own.piece_size) * sizeof(T);
    for (size_t p = 0; p < peers.size(); ++p) {
      const size_t bytes = static_cast<size_t>(PieceOf(own, piece).size) * sizeof(T);
      LS_RETURN_IF_ERROR(incoming[p].Receive(peers[p], slot, offset, bytes));
    }
    return absl::OkStatus();
  };
  for (int64_t piece = 0; piece < kWindow; ++piece) LS_RETURN_IF_ERROR(receive(piece));

  // Only read.
  Region outgoing(mesh_, const_cast<T*>(values.data()), values.size() * sizeof(T));
  int64_t most = 0;
  for (const Block& block : blocks) most = std::max(most, block.pieces);
  for (int64_t piece = 0; piece < most; ++piece) {
    for (const int peer : peers) {
      const Block& block = blocks[static_cast<size_t>(peer)];
      if (piece >= block.pieces) continue;
      const FlatRange range = PieceOf(block, piece);
      LS_RETURN_IF_ERROR(outgoing.Send(peer, slot, static_cast<size_t>(range.offset) * sizeof(T),
                                       static_cast<size_t>(range.size) * sizeof(T)));
    }
  }

  std::vector<T*> received(static_cast<size_t>(mesh_.size()), nullptr);
  for (int64_t piece = 0; piece < own.pieces; ++piece) {
    for (size_t p = 0; p < peers.size(); ++p) {
      const NowDoing receiving("receiving from ", mesh_.NameOf(peers[p]));
      LS_RETURN_IF_ERROR(incoming[p].AwaitReceive());
      received[static_cast<size_t>(peers[p])] = scratch + p * ring + piece % kWindow * own.piece_size;
    }
    LS_RETURN_IF_ERROR(came(piece, PieceOf(own, piece), received));
    LS_RETURN_IF_ERROR(receive(piece + kWindow));
  }
  return outgoing.AwaitAllSends();
}

template <typename T>
absl::Status Transfers::ReducePieces(const Call& call, absl::Span<T> values, const std::vector<int64_t>& sizes) {
  return ExchangePieces<T>(call, values, sizes, [&](int64_t, FlatRange range, const std::vector<T*>& received) {
    SumPiece(received, values.subspan(static_cast<size_t>(range.offset), static_cast<size_t>(range.size)));
    return absl::OkStatus();
  });
}

absl::Status Transfers::ReduceScatter(const Call& call) { return ReducePieces(call, call.integers, call.blocks); }

absl::Status Transfers::ReduceConvertGather(const Call& call) {
  Gather gather(mesh_, call, reinterpret_cast<char*>(call.floats.data()), sizeof(float),
                BlocksOf(call.blocks, most_elements_));
  LS_RETURN_IF_ERROR(gather.PostReceives());
  const int64_t own = std::accumulate(call.blocks.begin(), call.blocks.begin() + mesh_.rank(), int64_t{0});
  const auto came = [&](int64_t piece, FlatRange range, const std::vector<int64_t*>& received) {
    // The addends stay what they are: the sum is formed in what the first of the others sent.
    const auto size = static_cast<size_t>(range.size);
    const absl::Span<int64_t> sums(received[mesh_.rank() == 0 ? 1 : 0], size);
    AddInto(call.addends.subspan(static_cast<size_t>(range.offset), size), sums);
    for (const int64_t* const from : received) {
      if (from != nullptr && from != sums.data()) AddInto(absl::MakeConstSpan(from, size), sums);
    }
    call.convert(range.offset - own, range.end() - own, sums);
    return gather.SendPiece(piece);
  };
  LS_RETURN_IF_ERROR(ExchangePieces<int64_t>(call, call.addends, call.blocks, came));
  return gather.Finish();
}

template <typename T>
absl::Status Transfers::AllReduce(const Call& call, absl::Span<T> values) {
  if (values.empty()) return mesh_.status();
  if (values.size() * sizeof(T) <= kSmallBytes) return AllReduceSmall(call, values);
  const std::vector<int64_t> blocks = BlockSizes(static_cast<int64_t>(values.size()), mesh_.size());
  Gather gather(mesh_, call, reinterpret_cast<char*>(values.data()), sizeof(T), BlocksOf(blocks, most_elements_));
  // Gathered pieces arrive in blocks that this rank is still sending from: they may only arrive once these are out.
  LS_RETURN_IF_ERROR(ReducePieces(call, values, blocks));
  LS_RETURN_IF_ERROR(gather.PostReceives());
  LS_RETURN_IF_ERROR(gather.SendAll());
  return gather.Finish();
}

template <typename T>
absl::Status Transfers::AllReduceSmall(const Call& call, absl::Span<T> values) {
  const auto ranks = static_cast<size_t>(mesh_.size());
  const size_t n = values.size();
  T* const scratch = Scratch<T>(ranks * n);
  std::copy(values.begin(), values.end(), scratch + static_cast<size_t>(mesh_.rank()) * n);
  Gather gather(mesh_, call, reinterpret_cast<char*>(scratch), sizeof(T),
                BlocksOf(std::vector<int64_t>(ranks, static_cast<int64_t>(n)), most_elements_));
  LS_RETURN_IF_ERROR(gather.PostReceives());
  LS_RETURN_IF_ERROR(gather.SendAll());
  LS_RETURN_IF_ERROR(gather.Finish());
  for (size_t i = 0; i < n; ++i) {
    T sum = scratch[i];
    for (size_t r = 1; r < ranks; ++r) sum += scratch[r * n + i];
    values[i] = sum;
  }
  return absl::OkStatus();
}

// A chain from the root through the ranks in order: every rank forwards a piece as soon as it has it.
absl::Status Transfers::Broadcast(const Call& call) {
  const int position = (mesh_.rank() - call.root + mesh_.size()) % mesh_.size();
  const int previous = (mesh_.rank() + mesh_.size() - 1) % mesh_.size();
  const int next = (mesh_.rank() + 1) % mesh_.size();
  const uint64_t slot = SlotOf(call, Phase::kGather);
  Region region(mesh_, call.bytes.data(), call.bytes.size());
  const size_t pieces = (call.bytes.size() + kBroadcastPieceBytes - 1) / kBroadcastPieceBytes;
  const auto bytes_of = [&](size_t piece) {
    return std::min(kBroadcastPieceBytes, call.bytes.size() - piece * kBroadcastPieceBytes);
  };
  if (position > 0) {
    for (size_t piece = 0; piece < pieces; ++piece) {
      LS_RETURN_IF_ERROR(region.Receive(previous, slot, piece * kBroadcastPieceBytes, bytes_of(piece)));
    }
  }
  for (size_t piece = 0; piece < pieces; ++piece) {
    if (position > 0) {
      const NowDoing receiving("receiving from ", mesh_.NameOf(previous));
      LS_RETURN_IF_ERROR(region.AwaitReceive());
    }
    if (position + 1 < mesh_.size()) {
      LS_RETURN_IF_ERROR(region.Send(next, slot, piece * kBroadcastPieceBytes, bytes_of(piece)));
    }
  }
  return region.AwaitAllSends();
}

}  // namespace lockstep::worker
