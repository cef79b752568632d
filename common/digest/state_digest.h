// The digest of a job's state: one hash that is the same on every replica, in every checkpoint and for any number of
// shards. It is a function of the sorted (name, dtype, shape, bytes) alone; lineage, term and worker counts are not in
// it.
//
//   tensor digest = SHA-256(u32 len(name) · name · u32 len(dtype) · dtype · u32 rank · i64 dim… · bytes)
//   state digest  = SHA-256(the tensor digests, 32 bytes each, in the order of the names' bytes)
//
// Integers are little-endian; dtype is the safetensors name ("F32"); bytes are row-major and little-endian.
//
// Threading: thread-compatible. Tensor digests may be made on several threads and added on one.
#ifndef LOCKSTEP_COMMON_DIGEST_STATE_DIGEST_H_
#define LOCKSTEP_COMMON_DIGEST_STATE_DIGEST_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/digest/sha256.h"
#include "common/tensor/tensor.h"

namespace lockstep {

// One tensor's digest, fed piece by piece.
class TensorDigest {
 public:
  explicit TensorDigest(const TensorSpec& spec);
  void Update(absl::string_view bytes) { hash_.Update(bytes); }
  // REQUIRES: called once.
  Sha256Digest Finish() { return hash_.Finish(); }

 private:
  Sha256 hash_;
};

// The digests of all tensors, added in any order.
class StateDigestBuilder {
 public:
  // InvalidArgument when `name` was added before.
  absl::Status Add(absl::string_view name, const Sha256Digest& tensor);
  // Makes and adds the digest of a tensor whose bytes are at hand.
  absl::Status Add(const TensorSpec& spec, absl::string_view bytes);
  // 64 hexadecimal digits; can be called again after more was added.
  std::string Hex() const;
  size_t size() const { return tensors_.size(); }

 private:
  std::map<std::string, Sha256Digest> tensors_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_DIGEST_STATE_DIGEST_H_
