#include "worker/step/host_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/state_tensors.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/device/host/host_memory.h"

namespace lockstep::worker {
namespace {

constexpr size_t kAlignment = 64;

absl::string_view AsText(absl::Span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Calls fn(piece's tensor, offset in the tensor, offset from `offset`, count) for what of the share lies in the range.
template <typename F>
void ForEachPiece(const Share& share, uint64_t offset, uint64_t size, F fn) {
  auto piece = std::upper_bound(share.pieces.begin(), share.pieces.end(), offset,
                                [](uint64_t at, const SharePiece& p) { return at < p.begin; });
  if (piece != share.pieces.begin()) --piece;
  for (; piece != share.pieces.end() && piece->begin < offset + size; ++piece) {
    const uint64_t begin = std::max(piece->begin, offset);
    const uint64_t end = std::min(piece->begin + piece->bytes, offset + size);
    if (begin < end) fn(piece->tensor, begin - piece->begin, begin - offset, end - begin);
  }
}

}  // namespace

absl::StatusOr<int64_t> HostState::Place() {
  size_t end = 0;
  for (const StateTensor& tensor : layout_.tensors) {
    LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(tensor.spec.dtype, tensor.spec.shape));
    offsets_.push_back(end);
    sizes_.push_back(bytes);
    if (tensor.kind == StateKind::kAlias) continue;
    end = (end + bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  for (size_t i = 0; i < offsets_.size(); ++i) {
    if (layout_.tensors[i].kind != StateKind::kAlias) continue;
    const int of = layout_.Find(layout_.tensors[i].variable);
    LS_CHECK(of >= 0 && sizes_[static_cast<size_t>(of)] == sizes_[i], "an alias names a tensor of its form");
    offsets_[i] = offsets_[static_cast<size_t>(of)];
  }
  return static_cast<int64_t>(end);
}

absl::StatusOr<int64_t> HostState::BytesOf(const StateLayout& layout) { return HostState(layout).Place(); }

absl::StatusOr<HostState> HostState::Create(StateLayout layout) {
  LS_ASSIGN_OR_RETURN(const int64_t bytes, BytesOf(layout));
  LS_ASSIGN_OR_RETURN(std::unique_ptr<device::Buffer> memory, device::AllocateHostBuffer(static_cast<size_t>(bytes)));
  return In(std::move(layout), std::move(memory));
}

absl::StatusOr<HostState> HostState::In(StateLayout layout, std::unique_ptr<device::Buffer> memory) {
  HostState state(std::move(layout));
  LS_ASSIGN_OR_RETURN(const int64_t bytes, state.Place());
  LS_CHECK(memory->host_visible() && static_cast<int64_t>(memory->size()) == bytes, "the memory is that of the layout");
  state.step_index_ = state.layout_.Find(kStepCounterName);
  LS_CHECK(state.step_index_ >= 0, "every state has a step counter");
  state.buffer_ = std::move(memory);
  return state;
}

absl::Span<float> HostState::floats(int index) {
  LS_CHECK(layout_.tensors[index].spec.dtype == DType::kF32, "only float tensors are read as floats");
  return {reinterpret_cast<float*>(tensor(index).data()), sizes_[index] / sizeof(float)};
}

int32_t& HostState::exponent(int index) {
  LS_CHECK(layout_.tensors[index].kind == StateKind::kExponent, "only exponents are read as exponents");
  return *reinterpret_cast<int32_t*>(tensor(index).data());
}

int64_t& HostState::step() { return *reinterpret_cast<int64_t*>(tensor(step_index_).data()); }

int64_t HostState::step() const { return *reinterpret_cast<const int64_t*>(tensor(step_index_).data()); }

void HostState::CopyFrom(const HostState& other) {
  LS_CHECK(other.bytes().size() == bytes().size(), "states of one layout are copied");
  std::memcpy(bytes().data(), other.bytes().data(), bytes().size());
}

absl::Status HostState::Load(absl::Span<const Tensor> initial) {
  if (initial.size() != layout_.tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the state has ", layout_.tensors.size(), " tensors, given were ", initial.size()));
  }
  for (size_t i = 0; i < initial.size(); ++i) {
    const TensorSpec& spec = layout_.tensors[i].spec;
    if (initial[i].dtype() != spec.dtype || initial[i].shape() != spec.shape) {
      return absl::InvalidArgumentError(absl::StrCat("tensor '", spec.name, "' is ", DTypeName(spec.dtype),
                                                     ShapeString(spec.shape), ", given was ",
                                                     DTypeName(initial[i].dtype()), ShapeString(initial[i].shape())));
    }
    if (sizes_[i] > 0) std::memcpy(tensor(i).data(), initial[i].data(), sizes_[i]);
  }
  return absl::OkStatus();
}

StateDigests HostState::Digests(Pulse* pulse, int threads) const {
  std::vector<TensorBytes> tensors;
  for (size_t i = 0; i < layout_.tensors.size(); ++i) {
    tensors.push_back({&layout_.tensors[i].spec, AsText(tensor(static_cast<int>(i)))});
  }
  return DigestState(tensors, threads, [pulse](uint64_t bytes) { AdvancePulse(pulse, bytes); });
}

std::vector<CheckpointTensor> HostState::CheckpointLayout() const { return ToCheckpointTensors(layout_); }

std::vector<absl::string_view> HostState::ViewShare(const Share& share, uint64_t offset, uint64_t size) const {
  std::vector<absl::string_view> pieces;
  ForEachPiece(share, offset, size, [&](int index, uint64_t from, uint64_t, uint64_t count) {
    pieces.push_back(AsText(tensor(index)).substr(from, count));
  });
  return pieces;
}

void HostState::ReadShare(const Share& share, uint64_t offset, absl::Span<char> out) const {
  ForEachPiece(share, offset, out.size(), [&](int index, uint64_t from, uint64_t to, uint64_t count) {
    std::memcpy(out.data() + to, tensor(index).data() + from, count);
  });
}

void HostState::WriteShare(const Share& share, uint64_t offset, absl::Span<const char> in) {
  ForEachPiece(share, offset, in.size(), [&](int index, uint64_t to, uint64_t from, uint64_t count) {
    std::memcpy(tensor(index).data() + to, in.data() + from, count);
  });
}

}  // namespace lockstep::worker
