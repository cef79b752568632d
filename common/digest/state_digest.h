// The digest of a job's state: one hash that is the same on every replica, in every checkpoint and for any number of
// shards. It is a function of the sorted (name, dtype, shape, bytes) alone; lineage, term and worker counts are not in
// it. It is the root of a tree, so that several threads can compute it and a wrong byte can be traced to its leaf:
//
//   leaf digest   = SHA-256(up to 4 MiB of the tensor's bytes); a tensor without bytes has no leaf
//   tensor digest = SHA-256(u32 len(name) · name · u32 len(dtype) · dtype · u32 rank · i64 dim… · leaf digests)
//   state digest  = SHA-256(the tensor digests in the order of the names' bytes)
//
// Digests enter these hashes as 32 bytes; integers are little-endian; dtype is the safetensors name ("F32"); bytes are
// row-major and little-endian.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_DIGEST_STATE_DIGEST_H_
#define LOCKSTEP_COMMON_DIGEST_STATE_DIGEST_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "common/tensor/tensor.h"

namespace lockstep {

inline constexpr uint64_t kLeafBytes = uint64_t{4} << 20;

// How many leaves a tensor of so many bytes has.
constexpr uint64_t LeafCount(uint64_t bytes) { return bytes / kLeafBytes + (bytes % kLeafBytes != 0 ? 1 : 0); }
// How many bytes its leaf `index` has. REQUIRES: index < LeafCount(bytes).
constexpr uint64_t LeafSize(uint64_t bytes, uint64_t index) {
  const uint64_t left = bytes - index * kLeafBytes;
  return left < kLeafBytes ? left : kLeafBytes;
}

using LeafDigests = std::vector<Sha256Digest>;

Sha256Digest TensorDigestOf(const TensorSpec& spec, absl::Span<const Sha256Digest> leaves);

struct TensorDigests {
  Sha256Digest digest{};
  LeafDigests leaves;
};

// Digests a tensor from its bytes.
TensorDigests DigestTensor(const TensorSpec& spec, absl::string_view bytes);

// The digests of all tensors, added in any order.
class StateDigestBuilder {
 public:
  // InvalidArgument when `name` was added before.
  absl::Status Add(absl::string_view name, const Sha256Digest& tensor);
  // Digests a tensor from its bytes and adds the result.
  absl::Status Add(const TensorSpec& spec, absl::string_view bytes) {
    return Add(spec.name, DigestTensor(spec, bytes).digest);
  }
  // 64 hexadecimal digits; can be called again after more was added.
  std::string Hex() const;
  size_t size() const { return tensors_.size(); }

 private:
  std::map<std::string, Sha256Digest> tensors_;
};

// The whole tree of a state.
struct StateDigests {
  std::vector<TensorDigests> tensors;  // in the order of the argument
  std::string state;                   // 64 hexadecimal digits
};

struct TensorBytes {
  const TensorSpec* spec = nullptr;
  absl::string_view bytes;
};

// Digests a state in memory on up to `threads` threads, the caller's among them, leaf by leaf. `on_bytes`, which may be
// null, is called on these threads with the number of bytes of each leaf. REQUIRES: names are unique.
StateDigests DigestState(absl::Span<const TensorBytes> tensors, int threads,
                         const std::function<void(uint64_t bytes)>& on_bytes = nullptr);

// The tensor digest of manifests of format version 1: SHA-256 over the same header and the bytes themselves instead of
// leaf digests, fed piece by piece.
class FlatTensorDigest {
 public:
  explicit FlatTensorDigest(const TensorSpec& spec);
  void Update(absl::string_view bytes) { hash_.Update(bytes); }
  // REQUIRES: called once.
  Sha256Digest Finish() { return hash_.Finish(); }

 private:
  Sha256 hash_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DIGEST_STATE_DIGEST_H_
