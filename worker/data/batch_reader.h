// Reads batches ahead of the step: a thread reads the next logical shards of this rank while the current one is
// computed. The samples of a batch are a function of (seed, step, logical shard) alone (SampleStream).
//
// States of the queue: 1 filling (below its depth) -> 2 full (the thread waits for a call of Next) -> 1; any state -> 3
// stopped, by the destructor. Seek empties the queue and restarts it at another step.
//
// Threading: thread-compatible (one consumer); owns one thread.
#ifndef LOCKSTEP_WORKER_DATA_BATCH_READER_H_
#define LOCKSTEP_WORKER_DATA_BATCH_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/tensor/poison.h"
#include "common/tensor/tensor.h"
#include "worker/data/augmentation.h"
#include "worker/data/data_source.h"
#include "worker/data/mixing.h"
#include "worker/data/sample_stream.h"

namespace lockstep::worker {

// One logical shard of one step, or one evaluation batch.
struct Batch {
  int64_t step = 0;  // the batch serves the update from state step-1 to state `step`
  int64_t logical_shard = 0;
  std::vector<int64_t> samples;  // indices in the source, in order
  // [samples, ...] per field of the source, then of Mixing::fields() if there is one; empty with Options::blocks.
  std::vector<Tensor> fields;
  std::vector<absl::Span<std::byte>> bytes;  // per field, in `fields` or in a block
};

class BatchReader {
 public:
  struct Options {
    int64_t global_batch_size = 0;
    int64_t logical_shards = 1;  // divides global_batch_size
    int depth = kReadAhead;      // batches read ahead, at least 1
    // Memory for the batches: BatchesAlive(depth) blocks of BytesOfBatch bytes each. Empty: the reader allocates.
    // REQUIRES: aligned to Tensor::kAlignment, outlives the reader.
    std::vector<std::byte*> blocks = {};
    bool poison = kPoisonsMemory;                // poisons a batch's memory before it is read, to expose missing writes
    const Augmentation* augmentation = nullptr;  // applied to the samples; outlives the reader; null: none
    const Mixing* mixing = nullptr;              // applied to the passes afterwards; likewise
  };
  static constexpr int kReadAhead = 2;
  // The number of batches in memory: those read ahead and the consumer's.
  static constexpr int BatchesAlive(int depth) { return depth + 1; }

  // What a batch has of each sample: the fields of the source, then those of `mixing` if there is one.
  static std::vector<TensorSpec> FieldsOf(const DataSource& source, const Mixing* mixing);
  // The memory of a batch of `samples` samples.
  static size_t BytesOfBatch(const DataSource& source, int64_t samples, const Mixing* mixing = nullptr);

  // REQUIRES: `source` and `stream` outlive the reader.
  BatchReader(const DataSource* source, const SampleStream* stream, Options options);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Makes Next deliver `shards`, in this order, of step `first_step`, then of the step after, and so on. A rank calls
  // it when it enters a generation. REQUIRES: first_step >= 1; shards in [0, logical_shards), not empty.
  void Seek(int64_t first_step, std::vector<int64_t> shards);

  // Returns the next batch, valid until the next call of Next or Seek; blocks until it is read. If the source fails for
  // a batch, Next returns the error instead of it and of all later ones until Seek. REQUIRES: Seek was called.
  absl::StatusOr<const Batch*> Next();
  // Whether Next would return without blocking.
  bool Ready() const;

  // The total time that Next has blocked: how long steps waited for data.
  absl::Duration waited() const;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// One batch of the evaluation set, in order. A batch that reaches beyond the set is padded with copies of the set's
// first sample, masked out.
struct EvalBatch {
  std::vector<Tensor> fields;  // [batch_size, ...]
  Tensor mask;                 // float32 [batch_size]: 1 for a sample that counts, 0 for padding
  int64_t valid = 0;           // samples that count
  bool poison = kPoisonsMemory;
};

// The number of batches that cover the set.
int64_t NumEvalBatches(const DataSource& source, int64_t batch_size);
// The samples of the last batch, if they are fewer than those of the others; else 0.
int64_t RestOfSamples(const DataSource& source, int64_t batch_size);

// Reads `batch_size` samples from sample `first` on into `batch`, whose tensors are allocated unless they have the
// right size. Errors of the source. REQUIRES: the source has sample `first`.
absl::Status ReadEvalBatch(const DataSource& source, int64_t first, int64_t batch_size, EvalBatch& batch);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BATCH_READER_H_
