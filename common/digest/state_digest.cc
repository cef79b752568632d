#include "common/digest/state_digest.h"

#include <algorithm>
#include <atomic>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"

namespace lockstep {
namespace {

// Fewer are not worth a thread.
constexpr size_t kLeavesPerThread = 4;

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  for (size_t i = 0; i < sizeof(T); ++i) out.push_back(static_cast<char>(static_cast<uint64_t>(value) >> (8 * i)));
}

void AppendText(absl::string_view text, std::string& out) {
  AppendLittleEndian(static_cast<uint32_t>(text.size()), out);
  absl::StrAppend(&out, text);
}

// What a tensor's digest begins with.
std::string HeadOf(const TensorSpec& spec) {
  std::string head;
  AppendText(spec.name, head);
  AppendText(DTypeName(spec.dtype), head);
  AppendLittleEndian(static_cast<uint32_t>(spec.shape.size()), head);
  for (const int64_t dim : spec.shape) AppendLittleEndian(dim, head);
  return head;
}

absl::string_view BytesOf(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

absl::string_view LeafOf(absl::string_view bytes, size_t index) { return bytes.substr(index * kLeafBytes, kLeafBytes); }

}  // namespace

Sha256Digest TensorDigestOf(const TensorSpec& spec, absl::Span<const Sha256Digest> leaves) {
  Sha256 hash;
  hash.Update(HeadOf(spec));
  for (const Sha256Digest& leaf : leaves) hash.Update(BytesOf(leaf));
  return hash.Finish();
}

TensorDigests DigestTensor(const TensorSpec& spec, absl::string_view bytes) {
  TensorDigests digests;
  for (size_t leaf = 0; leaf < LeafCount(bytes.size()); ++leaf) {
    digests.leaves.push_back(Sha256Of(LeafOf(bytes, leaf)));
  }
  digests.digest = TensorDigestOf(spec, digests.leaves);
  return digests;
}

absl::Status StateDigestBuilder::Add(absl::string_view name, const Sha256Digest& tensor) {
  if (!tensors_.emplace(std::string(name), tensor).second) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is twice in one state"));
  }
  return absl::OkStatus();
}

std::string StateDigestBuilder::Hex() const {
  Sha256 hash;
  for (const auto& [name, digest] : tensors_) hash.Update(BytesOf(digest));
  return ToHex(hash.Finish());
}

StateDigests DigestState(absl::Span<const TensorBytes> tensors, int threads,
                         const std::function<void(uint64_t bytes)>& on_bytes) {
  struct Leaf {
    size_t tensor;
    size_t index;
  };
  StateDigests state;
  state.tensors.resize(tensors.size());
  std::vector<Leaf> leaves;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    const size_t count = LeafCount(tensors[tensor].bytes.size());
    state.tensors[tensor].leaves.resize(count);
    for (size_t index = 0; index < count; ++index) leaves.push_back({tensor, index});
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t i = next++; i < leaves.size(); i = next++) {
      const absl::string_view bytes = LeafOf(tensors[leaves[i].tensor].bytes, leaves[i].index);
      state.tensors[leaves[i].tensor].leaves[leaves[i].index] = Sha256Of(bytes);
      if (on_bytes) on_bytes(bytes.size());
    }
  };
  std::vector<std::thread> helpers;
  const size_t useful = std::min(leaves.size() / kLeavesPerThread, static_cast<size_t>(std::max(threads, 1)));
  for (size_t thread = 1; thread < useful; ++thread) helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();

  StateDigestBuilder root;
  for (size_t tensor = 0; tensor < tensors.size(); ++tensor) {
    TensorDigests& digests = state.tensors[tensor];
    digests.digest = TensorDigestOf(*tensors[tensor].spec, digests.leaves);
    LS_CHECK(root.Add(tensors[tensor].spec->name, digests.digest).ok(), "names in a state are unique");
  }
  state.state = root.Hex();
  return state;
}

FlatTensorDigest::FlatTensorDigest(const TensorSpec& spec) { hash_.Update(HeadOf(spec)); }

}  // namespace lockstep
