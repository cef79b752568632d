// Lays out the gradients of all trainable tensors in one flat float buffer. The buffer is cut into buckets, each
// reduced as soon as backward has filled it; a bucket is cut into one block per rank.
//
// Invariants
//   * The layout is a function of the tensor sizes and the bucket size alone, never of the ranks.
//   * Tensors keep their order and start 64-byte aligned; buckets start 256-byte aligned. A tensor is not split over
//     buckets. Padding between tensors stays zero.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ARITHMETIC_BUCKETER_H_
#define LOCKSTEP_WORKER_ARITHMETIC_BUCKETER_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

namespace lockstep::worker {

// Elements [offset, offset + size) of the flat buffer.
struct FlatRange {
  int64_t offset = 0;
  int64_t size = 0;

  int64_t end() const { return offset + size; }
  friend bool operator==(const FlatRange&, const FlatRange&) = default;
};

struct Bucket {
  FlatRange range;
  int first_tensor = 0;  // the bucket holds tensors [first_tensor, last_tensor)
  int last_tensor = 0;
};

class GradientLayout {
 public:
  // `tensor_sizes`: elements per tensor, each > 0, in the order in which backward finishes the gradients. A bucket
  // takes tensors until it holds at least `bucket_bytes` of float32; a larger tensor has a bucket of its own.
  GradientLayout(absl::Span<const int64_t> tensor_sizes, int64_t bucket_bytes);

  int64_t total_elements() const { return total_elements_; }  // of the flat buffer, padding included
  const std::vector<FlatRange>& tensors() const { return tensors_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }

  // Calls fn(tensor, range) for the parts of tensors that lie in `range`, in ascending order.
  void ForEachTensorIn(FlatRange range, absl::FunctionRef<void(int tensor, FlatRange part)> fn) const;

 private:
  int64_t total_elements_ = 0;
  std::vector<FlatRange> tensors_;
  std::vector<Bucket> buckets_;
};

// Cuts `elements` into one block per rank, as equal as possible: all are multiples of 16 elements except the last
// non-empty one, and later ranks may get empty blocks. The sizes add up to `elements`.
std::vector<int64_t> BlockSizes(int64_t elements, int ranks);

// The logical shards that a rank computes: [first, last), as equal as possible; lower ranks take the extra ones.
// REQUIRES: 0 <= rank < ranks <= logical_shards.
struct ShardRange {
  int first = 0;
  int last = 0;
};
ShardRange ShardsOf(int rank, int ranks, int logical_shards);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_BUCKETER_H_
