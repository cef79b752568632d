#include "worker/step/gradient_exchange.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/collectives/exact_sum.h"

namespace lockstep::worker {

absl::Status WaitFor(Pending& handle, Pulse* pulse) {
  const Pulse::Waiting waiting(pulse);
  for (;;) {
    absl::Status status = handle.Wait(absl::Seconds(1));
    if (status.code() != absl::StatusCode::kDeadlineExceeded) return status;
  }
}

GradientExchange::GradientExchange(Options options) : options_(std::move(options)) {
  as_it_is_.resize(options_.layout.tensors().size());
  if (takes_as_it_is()) return;
  floats_.resize(options_.layout.total_elements());
  if (sums_integers()) sums_.resize(options_.layout.total_elements());
}

int64_t GradientExchange::BytesOf(const GradientLayout& layout, int logical_shards, ReductionMode reduction) {
  if (reduction == ReductionMode::kFast) return layout.total_elements() * int64_t{sizeof(float)};
  return logical_shards == 1 ? 0 : layout.total_elements() * int64_t{sizeof(float) + sizeof(int64_t)};
}

void GradientExchange::Begin(Communicator& communicator, Tag tag, absl::Span<const int32_t> exponents) {
  LS_CHECK(exponents.size() == options_.layout.tensors().size(), "one exponent per tensor");
  communicator_ = &communicator;
  tag_ = tag;
  exponents_.assign(exponents.begin(), exponents.end());
  if (!sums_integers()) std::fill(exponents_.begin(), exponents_.end(), kExponentUnset);
  shards_ = ShardsOf(communicator.rank(), communicator.size(), options_.logical_shards);
  added_ = 0;
  next_bucket_ = 0;
  handles_.clear();
  word_ = RankWord{.tag = tag};
  word_.magnitudes.assign(options_.layout.tensors().size(), 0);
}

void GradientExchange::AddBucket(int index, absl::Span<const float> values) {
  LS_CHECK(index == next_bucket_ && added_ < shards_.last - shards_.first, "buckets come in order, of own shards only");
  ++next_bucket_;
  const Bucket& bucket = options_.layout.buckets()[index];
  LS_CHECK(static_cast<int64_t>(values.size()) == bucket.range.size, "a bucket is taken whole");
  for (int t = bucket.first_tensor; t < bucket.last_tensor; ++t) {
    const FlatRange range = options_.layout.tensors()[t];
    const absl::Span<const float> gradient = values.subspan(range.offset - bucket.range.offset, range.size);
    if (takes_as_it_is()) {
      as_it_is_[t] = gradient.data();
      word_.magnitudes[t] = LargestMagnitude(gradient);
      continue;
    }
    float* floats = floats_.data() + range.offset;
    if (options_.reduction == ReductionMode::kFast) {
      for (int64_t i = 0; i < range.size; ++i) floats[i] = added_ == 0 ? gradient[i] : floats[i] + gradient[i];
      continue;
    }
    const absl::Span<int64_t> sums(sums_.data() + range.offset, range.size);
    const uint32_t magnitude =
        added_ == 0 ? QuantizeStore(gradient, exponents_[t], sums) : QuantizeAdd(gradient, exponents_[t], sums);
    word_.magnitudes[t] = std::max(word_.magnitudes[t], magnitude);
  }
  if (in_last_shard()) SendBucket(bucket);
}

void GradientExchange::EndShard(absl::Span<const uint64_t> slots) {
  LS_CHECK(next_bucket_ == static_cast<int>(options_.layout.buckets().size()), "a shard ends with its last bucket");
  LS_CHECK(static_cast<int>(slots.size()) == options_.slots_per_shard, "every shard has the same slots");
  word_.slots.insert(word_.slots.end(), slots.begin(), slots.end());
  next_bucket_ = 0;
  ++added_;
}

void GradientExchange::SendBucket(const Bucket& bucket) {
  const FlatRange range = bucket.range;
  const absl::Span<float> floats(floats_.data() + range.offset, range.size);
  if (options_.reduction == ReductionMode::kFast) {
    handles_.push_back(communicator_->AllReduceSum(tag_, floats));
    return;
  }
  if (takes_as_it_is()) return;
  const std::vector<int64_t> blocks = BlockSizes(range.size, communicator_->size());
  const int64_t own =
      range.offset + std::accumulate(blocks.begin(), blocks.begin() + communicator_->rank(), int64_t{0});
  handles_.push_back(communicator_->ReduceConvertGather(
      tag_, absl::MakeSpan(sums_.data() + range.offset, range.size), floats, blocks,
      [this, own](int64_t begin, int64_t end) {
        options_.layout.ForEachTensorIn({own + begin, end - begin}, [this](int tensor, FlatRange part) {
          Dequantize(absl::MakeConstSpan(sums_.data() + part.offset, part.size), exponents_[tensor],
                     absl::MakeSpan(floats_.data() + part.offset, part.size));
        });
      }));
}

absl::StatusOr<ReducedWord> GradientExchange::Finish(const ControlContribution& slot, const absl::Status& early) {
  absl::Status outcome = early;
  const WordShape shape{.generation = communicator_->generation(),
                        .ranks = communicator_->size(),
                        .logical_shards = options_.logical_shards,
                        .tensors = static_cast<int>(options_.layout.tensors().size()),
                        .slots_per_shard = options_.slots_per_shard};
  if (outcome.ok()) {
    LS_CHECK(added_ == shards_.last - shards_.first, "every shard is added before the attempt ends");
    word_.control = slot;
    const std::vector<int64_t> blocks = WordBlockBytes(shape);
    word_blocks_.assign(std::accumulate(blocks.begin(), blocks.end(), int64_t{0}), 0);
    outcome = PackWord(shape, communicator_->rank(), word_, absl::MakeSpan(word_blocks_));
    if (outcome.ok()) handles_.push_back(communicator_->AllGather(tag_, absl::MakeSpan(word_blocks_), blocks));
  }
  if (!outcome.ok()) communicator_->Abort(outcome);
  for (const Handle& handle : handles_) {
    const absl::Status status = WaitFor(*handle, options_.pulse);
    if (outcome.ok()) outcome = status;
  }
  handles_.clear();
  LS_RETURN_IF_ERROR(outcome);
  return FoldWords(shape, word_blocks_);
}

absl::Span<const float> GradientExchange::gradient(int tensor) const {
  const FlatRange range = options_.layout.tensors()[tensor];
  return {takes_as_it_is() ? as_it_is_[tensor] : floats_.data() + range.offset, static_cast<size_t>(range.size)};
}

}  // namespace lockstep::worker
