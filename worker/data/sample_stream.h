// The endless stream of training samples: epoch after epoch, each a keyed permutation of the data set. The sample at a
// position is computed directly, so a resume needs only the step number, and any number of workers read the same
// stream. Batches continue across the end of an epoch: none is short.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_SAMPLE_STREAM_H_
#define LOCKSTEP_WORKER_DATA_SAMPLE_STREAM_H_

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep::worker {

class SampleStream {
 public:
  // REQUIRES: 1 <= num_samples < 2^62.
  SampleStream(uint64_t seed, int64_t num_samples) : seed_(seed), num_samples_(num_samples) {}

  int64_t num_samples() const { return num_samples_; }

  // The epoch of a position >= 0, counted from 0.
  int64_t EpochAt(int64_t position) const { return position / num_samples_; }

  // The sample at position >= 0.
  int64_t SampleAt(int64_t position) const;

  // The samples at positions [first, first + out.size()).
  void SamplesAt(int64_t first, absl::Span<int64_t> out) const;

 private:
  uint64_t seed_;
  int64_t num_samples_;
};

// The first position of logical shard `shard` of step `step` >= 1, which leads from state step-1 to state `step`.
inline int64_t ShardPosition(int64_t step, int64_t shard, int64_t global_batch_size, int64_t logical_shards) {
  return (step - 1) * global_batch_size + shard * (global_batch_size / logical_shards);
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_SAMPLE_STREAM_H_
