#include "worker/arithmetic/bucketer.h"

#include <algorithm>

#include "common/status/check.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kTensorAlignment = 16;  // elements: 64 bytes of float32
constexpr int64_t kBucketAlignment = 64;  // elements: 256 bytes of float32

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

}  // namespace

GradientLayout::GradientLayout(absl::Span<const int64_t> tensor_sizes, int64_t bucket_bytes) {
  const int64_t bucket_elements = std::max<int64_t>(1, bucket_bytes / static_cast<int64_t>(sizeof(float)));
  int64_t offset = 0;
  for (size_t t = 0; t < tensor_sizes.size(); ++t) {
    LS_CHECK(tensor_sizes[t] > 0, "a gradient has elements");
    const bool starts_bucket = buckets_.empty() || offset - buckets_.back().range.offset >= bucket_elements ||
                               tensor_sizes[t] >= bucket_elements;
    offset = RoundUp(offset, starts_bucket ? kBucketAlignment : kTensorAlignment);
    if (starts_bucket) {
      const int tensor = static_cast<int>(t);
      buckets_.push_back({.range = {offset, 0}, .first_tensor = tensor, .last_tensor = tensor});
    }
    tensors_.push_back({offset, tensor_sizes[t]});
    offset += tensor_sizes[t];
    buckets_.back().last_tensor = static_cast<int>(t) + 1;
    buckets_.back().range.size = offset - buckets_.back().range.offset;
  }
  total_elements_ = RoundUp(offset, kBucketAlignment);
}

void GradientLayout::ForEachTensorIn(FlatRange range, absl::FunctionRef<void(int, FlatRange)> fn) const {
  auto it = std::partition_point(tensors_.begin(), tensors_.end(),
                                 [&](const FlatRange& tensor) { return tensor.end() <= range.offset; });
  for (; it != tensors_.end() && it->offset < range.end(); ++it) {
    const int64_t begin = std::max(it->offset, range.offset);
    const int64_t end = std::min(it->end(), range.end());
    if (begin < end) fn(static_cast<int>(it - tensors_.begin()), {begin, end - begin});
  }
}

std::vector<int64_t> BlockSizes(int64_t elements, int ranks) {
  LS_CHECK(ranks > 0 && elements >= 0, "there are ranks to share the elements");
  const int64_t block = RoundUp((elements + ranks - 1) / ranks, kTensorAlignment);
  std::vector<int64_t> sizes(static_cast<size_t>(ranks));
  int64_t left = elements;
  for (int64_t& size : sizes) {
    size = std::min(block, left);
    left -= size;
  }
  return sizes;
}

ShardRange ShardsOf(int rank, int ranks, int logical_shards) {
  LS_CHECK(0 <= rank && rank < ranks && ranks <= logical_shards, "every rank has a logical shard");
  const int each = logical_shards / ranks;
  const int extra = logical_shards % ranks;
  const int first = rank * each + std::min(rank, extra);
  return {first, first + each + (rank < extra ? 1 : 0)};
}

}  // namespace lockstep::worker
