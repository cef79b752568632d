// Fills input buffers ahead of the step: a thread reads the next logical shards of this rank while the current ones are
// computed. Which samples a batch holds is a function of (seed, step, logical shard) alone (SampleStream); the reader
// only decides when they are copied.
//
// States of the queue: 1 filling (queue below its depth) -> 2 full (the thread waits for a Next) -> 1; 3 stopped, from
// anywhere, by the destructor. Seek empties the queue and starts again elsewhere.
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
#include "worker/data/sample_stream.h"

namespace lockstep::worker {

// One logical shard of one step, or one evaluation batch.
struct Batch {
  int64_t step = 0;  // the update that this batch serves: it leads from state step-1 to state `step`
  int64_t logical_shard = 0;
  std::vector<int64_t> samples;  // the indices read, in order
  std::vector<Tensor> fields;    // [samples, ...] per field of the source; empty where the reader was given memory
  std::vector<absl::Span<std::byte>> bytes;  // per field of the source, wherever it lies
};

class BatchReader {
 public:
  struct Options {
    int64_t global_batch_size = 0;
    int64_t logical_shards = 1;  // divides global_batch_size
    int depth = kReadAhead;      // batches read ahead, at least 1
    // Where batches lie, a block of BytesOfBatch for each that is alive; empty: in memory of the reader's own.
    // REQUIRES: aligned to Tensor::kAlignment, outlives the reader.
    std::vector<std::byte*> blocks = {};
    bool poison = kPoisonsMemory;                // a batch before it is read: what the source leaves out shows
    const Augmentation* augmentation = nullptr;  // what becomes of samples that were read; outlives the reader
  };
  static constexpr int kReadAhead = 2;
  // So many batches take memory: those read ahead, and the one that the consumer has.
  static constexpr int BatchesAlive(int depth) { return depth + 1; }

  // Of one batch of so many samples.
  static size_t BytesOfBatch(const DataSource& source, int64_t samples);

  // REQUIRES: `source` and `stream` outlive the reader.
  BatchReader(const DataSource* source, const SampleStream* stream, Options options);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // From now on delivers `shards` (in this order) of step `first_step`, then of the step after, and so on: what a rank
  // calls when it enters a generation. first_step >= 1; shards in [0, logical_shards), not empty.
  void Seek(int64_t first_step, std::vector<int64_t> shards);

  // The next batch; blocks until it is read. Valid until the next call of Next or Seek. An error of the source comes in
  // the place of the batch that it was to be, and of all behind it until Seek. REQUIRES: Seek was called.
  absl::StatusOr<const Batch*> Next();
  // Whether Next would return at once.
  bool Ready() const;

  // Time that Next has spent waiting since construction: the job waits for its data.
  absl::Duration waited() const;

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// One slice of the evaluation set, in order. The last batch is padded with the set's first sample, masked out.
struct EvalBatch {
  std::vector<Tensor> fields;  // [batch_size, ...]
  Tensor mask;                 // float32 [batch_size]: 1 for a sample that counts, 0 for padding
  int64_t valid = 0;           // how many count
  bool poison = kPoisonsMemory;
};

// Number of batches that cover the set.
int64_t NumEvalBatches(const DataSource& source, int64_t batch_size);

// Reads evaluation batch `index`, in [0, NumEvalBatches), into `batch`, allocating its tensors when they do not fit
// yet. Errors of the source.
absl::Status ReadEvalBatch(const DataSource& source, int64_t batch_size, int64_t index, EvalBatch& batch);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_BATCH_READER_H_
