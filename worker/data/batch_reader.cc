#include "worker/data/batch_reader.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>
#include <utility>

#include "common/liveness/activity.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"

namespace lockstep::worker {
namespace {

std::vector<Tensor> MakeBatch(absl::Span<const TensorSpec> fields, int64_t samples) {
  std::vector<Tensor> tensors;
  for (const TensorSpec& spec : fields) {
    Shape shape = {samples};
    shape.insert(shape.end(), spec.shape.begin(), spec.shape.end());
    tensors.push_back(Tensor::Zeros(spec.dtype, std::move(shape)));
  }
  return tensors;
}

size_t BytesOfField(const TensorSpec& spec, int64_t samples) {
  return static_cast<size_t>(samples * NumElements(spec.shape) * DTypeSize(spec.dtype));
}

size_t RoundUp(size_t bytes) { return (bytes + Tensor::kAlignment - 1) / Tensor::kAlignment * Tensor::kAlignment; }

absl::Status ReadFields(const DataSource& source, absl::Span<const int64_t> samples, std::vector<Tensor>& fields) {
  for (size_t f = 0; f < fields.size(); ++f) {
    LS_RETURN_IF_ERROR(source.Read(static_cast<int>(f), samples, fields[f].bytes()));
  }
  return absl::OkStatus();
}

}  // namespace

struct BatchReader::Shared {
  Shared(const DataSource* source, const SampleStream* stream, Options options)
      : source(source), stream(stream), options(options), thread([this] { Run(); }) {}

  ~Shared() {
    {
      MutexLock lock(&mutex);
      stopping = true;
      wake.SignalAll();
    }
    thread.join();
  }

  // What the thread reads next, in a batch taken from `free` or made.
  std::unique_ptr<Batch> TakeWork() EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    std::unique_ptr<Batch> batch;
    if (free.empty()) {
      batch = std::make_unique<Batch>();
      if (!options.blocks.empty()) {
        LS_CHECK(made < options.blocks.size(), "so many batches are alive");
        LayOut(options.blocks[made++], *batch);
      }
    } else {
      batch = std::move(free.back());
      free.pop_back();
    }
    batch->step = next_step;
    batch->logical_shard = shards[next_shard];
    if (++next_shard == shards.size()) {
      next_shard = 0;
      ++next_step;
    }
    return batch;
  }

  int64_t samples() const { return options.global_batch_size / options.logical_shards; }

  void LayOut(std::byte* block, Batch& batch) const {
    for (const TensorSpec& spec : FieldsOf(*source, options.mixing)) {
      batch.bytes.emplace_back(block, BytesOfField(spec, samples()));
      block += RoundUp(batch.bytes.back().size());
    }
  }

  absl::Status Fill(Batch& batch) const {
    batch.samples.resize(static_cast<size_t>(samples()));
    if (batch.bytes.empty()) {
      batch.fields = MakeBatch(FieldsOf(*source, options.mixing), samples());
      for (Tensor& field : batch.fields) batch.bytes.push_back(field.bytes());
    }
    const int64_t first =
        ShardPosition(batch.step, batch.logical_shard, options.global_batch_size, options.logical_shards);
    stream->SamplesAt(first, absl::MakeSpan(batch.samples));
    for (size_t f = 0; f < batch.bytes.size(); ++f) {
      if (options.poison) Poison(batch.bytes[f]);
      if (f < source->fields().size()) LS_RETURN_IF_ERROR(ReadField(static_cast<int>(f), first, batch));
    }
    if (options.mixing != nullptr) options.mixing->Apply(first, batch.bytes);
    return absl::OkStatus();
  }

  // `first` is the position of the batch's first sample.
  absl::Status ReadField(int field, int64_t first, Batch& batch) const {
    const absl::Span<std::byte> bytes = batch.bytes[static_cast<size_t>(field)];
    const Augmentation* const changes = options.augmentation;
    if (changes == nullptr || !changes->crops()) {
      LS_RETURN_IF_ERROR(source->Read(field, batch.samples, bytes));
    } else {
      const auto region = [&](size_t i, ImageSize size) {
        return changes->RegionAt(first + static_cast<int64_t>(i), size);
      };
      LS_RETURN_IF_ERROR(source->ReadRegions(field, batch.samples, region, bytes));
    }
    if (changes != nullptr) changes->Apply(field, first, bytes);
    return absl::OkStatus();
  }

  void Run() {
    NameThread("data");
    while (true) {
      std::unique_ptr<Batch> batch;
      uint64_t seek = 0;
      {
        MutexLock lock(&mutex);
        while (!stopping && (shards.empty() || ready.size() >= static_cast<size_t>(options.depth))) wake.Wait(&mutex);
        if (stopping) return;
        batch = TakeWork();
        seek = seeks;
      }
      const NowDoing reading("reading the samples of step ", batch->step, ", logical shard ", batch->logical_shard);
      absl::Status filled_it = Fill(*batch);
      MutexLock lock(&mutex);
      // A batch that was read for another place is only its memory.
      if (seek != seeks) {
        free.push_back(std::move(batch));
      } else if (!filled_it.ok()) {
        failure = std::move(filled_it);
        shards.clear();  // nothing more is read
        free.push_back(std::move(batch));
        filled.Signal();
      } else {
        ready.push_back(std::move(batch));
        filled.Signal();
      }
    }
  }

  const DataSource* const source;
  const SampleStream* const stream;
  const Options options;

  Mutex mutex;
  CondVar wake;    // the thread: there is room, another place, or the end
  CondVar filled;  // the consumer: there is a batch
  bool stopping GUARDED_BY(mutex) = false;
  uint64_t seeks GUARDED_BY(mutex) = 0;
  std::vector<int64_t> shards GUARDED_BY(mutex);
  absl::Status failure GUARDED_BY(mutex);  // behind what is ready
  int64_t next_step GUARDED_BY(mutex) = 0;
  size_t next_shard GUARDED_BY(mutex) = 0;
  std::deque<std::unique_ptr<Batch>> ready GUARDED_BY(mutex);
  std::vector<std::unique_ptr<Batch>> free GUARDED_BY(mutex);
  size_t made GUARDED_BY(mutex) = 0;  // batches, where blocks were given

  // The consumer's own.
  std::unique_ptr<Batch> current;
  absl::Duration waited;

  std::thread thread;  // last: it reads all of the above
};

BatchReader::BatchReader(const DataSource* source, const SampleStream* stream, Options options) {
  LS_CHECK(options.depth >= 1 && options.logical_shards >= 1 && options.global_batch_size >= options.logical_shards &&
               options.global_batch_size % options.logical_shards == 0,
           "the shards divide the batch");
  LS_CHECK(stream->num_samples() == source->num_samples(), "the stream is over this source");
  LS_CHECK(options.blocks.empty() || options.blocks.size() >= static_cast<size_t>(BatchesAlive(options.depth)),
           "a block for each batch that is alive");
  shared_ = std::make_unique<Shared>(source, stream, options);
}

BatchReader::~BatchReader() = default;

void BatchReader::Seek(int64_t first_step, std::vector<int64_t> shards) {
  LS_CHECK(first_step >= 1 && !shards.empty(), "a rank reads some shard of a step");
  for (const int64_t shard : shards) {
    LS_CHECK(shard >= 0 && shard < shared_->options.logical_shards, "the shard exists");
  }
  MutexLock lock(&shared_->mutex);
  ++shared_->seeks;
  shared_->next_step = first_step;
  shared_->shards = std::move(shards);
  shared_->failure = absl::OkStatus();
  shared_->next_shard = 0;
  for (auto& batch : shared_->ready) shared_->free.push_back(std::move(batch));
  shared_->ready.clear();
  if (shared_->current != nullptr) shared_->free.push_back(std::move(shared_->current));
  shared_->wake.Signal();
}

absl::StatusOr<const Batch*> BatchReader::Next() {
  const auto start = std::chrono::steady_clock::now();
  MutexLock lock(&shared_->mutex);
  LS_CHECK(shared_->seeks > 0, "Seek comes before Next");
  if (shared_->current != nullptr) shared_->free.push_back(std::move(shared_->current));
  while (shared_->ready.empty() && shared_->failure.ok()) shared_->filled.Wait(&shared_->mutex);
  if (shared_->ready.empty()) return shared_->failure;
  shared_->current = std::move(shared_->ready.front());
  shared_->ready.pop_front();
  shared_->wake.Signal();
  shared_->waited += absl::FromChrono(std::chrono::steady_clock::now() - start);
  return shared_->current.get();
}

bool BatchReader::Ready() const {
  MutexLock lock(&shared_->mutex);
  return !shared_->ready.empty();
}

std::vector<TensorSpec> BatchReader::FieldsOf(const DataSource& source, const Mixing* mixing) {
  std::vector<TensorSpec> fields = source.fields();
  if (mixing != nullptr) fields.insert(fields.end(), mixing->fields().begin(), mixing->fields().end());
  return fields;
}

size_t BatchReader::BytesOfBatch(const DataSource& source, int64_t samples, const Mixing* mixing) {
  size_t bytes = 0;
  for (const TensorSpec& spec : FieldsOf(source, mixing)) bytes += RoundUp(BytesOfField(spec, samples));
  return bytes;
}

absl::Duration BatchReader::waited() const { return shared_->waited; }

int64_t NumEvalBatches(const DataSource& source, int64_t batch_size) {
  return (source.num_samples() + batch_size - 1) / batch_size;
}

int64_t RestOfSamples(const DataSource& source, int64_t batch_size) { return source.num_samples() % batch_size; }

absl::Status ReadEvalBatch(const DataSource& source, int64_t first, int64_t batch_size, EvalBatch& batch) {
  LS_CHECK(first >= 0 && first < source.num_samples(), "the evaluation batch exists");
  if (batch.fields.empty() || batch.fields[0].shape()[0] != batch_size) {
    batch.fields = MakeBatch(source.fields(), batch_size);
    batch.mask = Tensor::Zeros(DType::kF32, {batch_size});
  }
  batch.valid = std::min(batch_size, source.num_samples() - first);
  std::vector<int64_t> samples(static_cast<size_t>(batch_size), 0);
  absl::Span<float> mask = batch.mask.elements<float>();
  for (int64_t i = 0; i < batch_size; ++i) {
    const bool counts = i < batch.valid;
    mask[static_cast<size_t>(i)] = counts ? 1.0f : 0.0f;
    if (counts) samples[static_cast<size_t>(i)] = first + i;
  }
  if (batch.poison) {
    for (Tensor& field : batch.fields) Poison(field.bytes());
  }
  return ReadFields(source, samples, batch.fields);
}

}  // namespace lockstep::worker
