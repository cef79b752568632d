#include "worker/step/gradient_exchange.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>

#include "common/liveness/activity.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/arithmetic/exact_sum.h"
#include "worker/collectives/device_communicator.h"
#include "worker/step/gradient_memory.h"

namespace lockstep::worker {

using device::Accumulate;
using device::MirroredBuffer;

absl::Status WaitFor(Pending& handle, Pulse* pulse) {
  const Pulse::Waiting waiting(pulse);
  for (;;) {
    absl::Status status = handle.Wait(absl::Seconds(1));
    if (status.code() != absl::StatusCode::kDeadlineExceeded) return status;
  }
}

GradientExchange::GradientExchange(Options options)
    : options_(std::move(options)), math_(options_.device->step_math()) {}

GradientExchange::~GradientExchange() {
  // What is queued uses memory that is about to go; its failure has nobody left to report to.
  (void)options_.stream->Synchronize();
  if (copies_ != nullptr) (void)copies_->Synchronize();
}

absl::StatusOr<std::unique_ptr<GradientExchange>> GradientExchange::Make(Options options) {
  LS_CHECK(options.buckets.size() == options.layout.buckets().size(), "one address per bucket");
  std::unique_ptr<GradientExchange> exchange(new GradientExchange(std::move(options)));
  LS_RETURN_IF_ERROR(exchange->Allocate());
  return exchange;
}

absl::Status GradientExchange::Allocate() {
  const GradientLayout& layout = options_.layout;
  device::Device& device = *options_.device;
  for (const Bucket& bucket : layout.buckets()) {
    std::vector<device::TensorRange> ranges;
    for (int t = bucket.first_tensor; t < bucket.last_tensor; ++t) {
      const FlatRange range = layout.tensors()[static_cast<size_t>(t)];
      ranges.push_back({.begin = range.offset - bucket.range.offset, .size = range.size, .index = t});
    }
    LS_ASSIGN_OR_RETURN(tables_.emplace_back(), math_.MakeTensorTable(ranges));
  }
  const auto shards = static_cast<size_t>(options_.logical_shards);
  const size_t slots = shards * static_cast<size_t>(options_.slots_per_shard);
  LS_ASSIGN_OR_RETURN(records_, MirroredBuffer::Make(device, totals_at() + slots * sizeof(double)));
  LS_ASSIGN_OR_RETURN(exponents_, MirroredBuffer::Make(device, layout.tensors().size() * sizeof(int32_t)));
  if (!takes_as_it_is()) {
    const auto elements = static_cast<size_t>(layout.total_elements());
    LS_ASSIGN_OR_RETURN(floats_, AllocateExchanged(elements * sizeof(float)));
    if (sums_integers()) {
      LS_ASSIGN_OR_RETURN(sums_, AllocateExchanged(elements * sizeof(int64_t)));
    }
  }
  LS_ASSIGN_OR_RETURN(filled_, device.NewEvent());
  if (device.host_visible()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(copies_, device.NewStream());
  for (size_t b = 0; b < layout.buckets().size(); ++b) {
    LS_ASSIGN_OR_RETURN(staged_.emplace_back(), device.NewEvent());
  }
  return absl::OkStatus();
}

absl::StatusOr<MirroredBuffer> GradientExchange::AllocateExchanged(size_t bytes) {
  if (!options_.device->host_visible()) return MirroredBuffer::Make(*options_.device, bytes, /*with_host=*/false);
  LS_ASSIGN_OR_RETURN(auto buffer, AllocateForPeers(options_.shared_memory.get(), *options_.device, bytes));
  return MirroredBuffer::Over(std::move(buffer));
}

int64_t GradientExchange::BytesOf(const GradientLayout& layout, int logical_shards, ReductionMode reduction) {
  if (reduction == ReductionMode::kFast) return layout.total_elements() * int64_t{sizeof(float)};
  return logical_shards == 1 ? 0 : layout.total_elements() * int64_t{sizeof(float) + sizeof(int64_t)};
}

size_t GradientExchange::totals_at() const {
  return (options_.layout.tensors().size() * sizeof(uint32_t) + sizeof(double) - 1) / sizeof(double) * sizeof(double);
}

double* GradientExchange::shard_totals() const {
  return reinterpret_cast<double*>(records_.on_device() + row_at(added_));
}

ShardClaim GradientExchange::Claim(Tag tag, absl::Span<const int32_t> exponents) const {
  // A redo has exponents of its own, and nobody begins with one.
  const auto* const summed_with = reinterpret_cast<const int32_t*>(exponents_.on_host());
  if (!broken_ || !(tag == tag_) || !std::equal(exponents.begin(), exponents.end(), summed_with)) return {};
  ShardClaim claim{.summed = {order_.begin(), order_.begin() + added_}};
  std::sort(claim.summed.begin(), claim.summed.end());
  // Where values stay in the pass's buckets, the next pass overwrites those of a shard that is not finished.
  if (!keeps_values_ && std::max(next_bucket_, begun_buckets_) > 0) claim.begun = order_[static_cast<size_t>(added_)];
  return claim;
}

// A shard that was begun comes next: some buckets hold it, and its gradients will be the same ones again.
void GradientExchange::OrderShards(const ShardClaim& kept) {
  const std::vector<int>& own = shards_[static_cast<size_t>(communicator_->rank())];
  if (kept.empty()) {
    added_ = begun_buckets_ = 0;
    order_ = own;
  } else {
    begun_buckets_ = kept.begun < 0 ? 0 : std::max(next_bucket_, begun_buckets_);
    order_.resize(static_cast<size_t>(added_) + (kept.begun < 0 ? 0 : 1));
    for (const int shard : own) {
      if (std::find(order_.begin(), order_.end(), shard) == order_.end()) order_.push_back(shard);
    }
  }
  kept_ = added_;
  next_bucket_ = 0;
}

absl::Status GradientExchange::Begin(Communicator& communicator, Tag tag, absl::Span<const int32_t> exponents,
                                     ShardAssignment shards) {
  const auto rank = static_cast<size_t>(communicator.rank());
  const ShardClaim kept = shards.accepted[rank] ? Claim(tag, exponents) : ShardClaim();
  communicator_ = &communicator;
  tag_ = tag;
  shards_ = std::move(shards.shards);
  return Start(kept, exponents);
}

absl::Status GradientExchange::BeginAgain(absl::Span<const int32_t> exponents) {
  LS_CHECK(began_ && !broken_ && added_ == own_shards(), "an attempt that succeeded is repeated");
  ++tag_.attempt;
  return Start(keeps_values_ ? ShardClaim{.summed = order_} : ShardClaim(), exponents);
}

absl::Status GradientExchange::Start(const ShardClaim& kept, absl::Span<const int32_t> exponents) {
  LS_CHECK(exponents.size() == options_.layout.tensors().size(), "one exponent per tensor");
  OrderShards(kept);
  LS_CHECK(order_.size() == shards_[static_cast<size_t>(communicator_->rank())].size(),
           "a rank contributes what it claimed");
  began_ = broken_ = false;
  sent_ = 0;
  submitted_ = 0;
  passes_done_ = false;
  handles_.clear();
  word_handle_ = nullptr;
  auto* const own = reinterpret_cast<int32_t*>(exponents_.on_host());
  std::copy(exponents.begin(), exponents.end(), own);
  if (!sums_integers()) std::fill_n(own, exponents.size(), kExponentUnset);
  if (goes_over_host()) {
    LS_RETURN_IF_ERROR(sums_.EnsureHost(*options_.device));
    LS_RETURN_IF_ERROR(floats_.EnsureHost(*options_.device));
  }
  LS_RETURN_IF_ERROR(exponents_.ToDevice(*options_.stream, 0, exponents_.size()));
  // Magnitudes of what is kept stay, as do its totals.
  const size_t zero_from = kept.empty() ? 0 : row_at(added_);
  if (zero_from < record_bytes()) {
    LS_RETURN_IF_ERROR(options_.stream->Zero(records_.on_device() + zero_from, record_bytes() - zero_from));
  }
  LS_RETURN_IF_ERROR(ChooseForm());
  began_ = true;
  return added_ == own_shards() ? SendAll() : absl::OkStatus();
}

int GradientExchange::kept_buckets() const {
  return added_ > 0 ? static_cast<int>(options_.layout.buckets().size()) : begun_buckets_;
}

absl::Status GradientExchange::ChooseForm() {
  const bool nothing_kept = kept_buckets() == 0;
  const bool had_values = keeps_values_ && !nothing_kept;
  keeps_values_ = sums_integers() && floats_.in_place() && options_.buckets_stay && own_shards() == 1 &&
                  (nothing_kept || had_values);
  if (!had_values || keeps_values_) return absl::OkStatus();
  for (size_t b = 0; b < tables_.size(); ++b) {
    LS_RETURN_IF_ERROR(math_.Quantize(*options_.stream, *tables_[b], Accumulate::kStore, options_.buckets[b],
                                      exponents(), sums(static_cast<int>(b)), magnitudes()));
  }
  return absl::OkStatus();
}

// Of a rank that has nothing to compute.
absl::Status GradientExchange::SendAll() {
  for (int bucket = 0; bucket < static_cast<int>(options_.layout.buckets().size()); ++bucket) {
    if (order_.empty()) {
      const auto bytes = static_cast<size_t>(range_of(bucket).size) * sizeof(int64_t);
      LS_RETURN_IF_ERROR(options_.stream->Zero(reinterpret_cast<std::byte*>(sums(bucket)), bytes));
    }
    LS_RETURN_IF_ERROR(SendBucket(bucket));
  }
  return absl::OkStatus();
}

absl::Status GradientExchange::AddBucket(int bucket) {
  LS_CHECK(bucket == next_bucket_ && added_ < own_shards(), "buckets come in order, of own shards only");
  ++next_bucket_;
  device::Stream& stream = *options_.stream;
  const device::TensorTable& table = *tables_[static_cast<size_t>(bucket)];
  const float* const values = options_.buckets[static_cast<size_t>(bucket)];
  const Accumulate accumulate = added_ == 0 ? Accumulate::kStore : Accumulate::kAdd;
  std::optional<Profiler::Scope> scope(std::in_place, options_.profiler, ProfileTrack::kReduction, "(quantise)");
  if (takes_as_it_is()) return math_.FindMagnitudes(stream, table, values, magnitudes());
  if (options_.reduction == ReductionMode::kFast) {
    LS_RETURN_IF_ERROR(math_.AddFloats(stream, table, accumulate, values, floats(bucket)));
  } else if (bucket >= begun_buckets_) {
    LS_RETURN_IF_ERROR(
        keeps_values_ ? math_.FindMagnitudes(stream, table, values, magnitudes())
                      : math_.Quantize(stream, table, accumulate, values, exponents(), sums(bucket), magnitudes()));
  }
  scope.reset();
  return in_last_shard() ? SendBucket(bucket) : absl::OkStatus();
}

absl::Status GradientExchange::EndShard() {
  LS_CHECK(next_bucket_ == static_cast<int>(options_.layout.buckets().size()), "a shard ends with its last bucket");
  next_bucket_ = begun_buckets_ = 0;
  ++added_;
  return absl::OkStatus();
}

absl::Status GradientExchange::SendBucket(int bucket) {
  const Profiler::Scope scope(options_.profiler, ProfileTrack::kReduction, "(send)");
  ++sent_;
  device::Stream& stream = *options_.stream;
  if (DeviceCommunicator* const on_device = communicator_->on_device(); on_device != nullptr) {
    // Here, where the pulse shows that a peer is waited for, rather than in Reduce. What failed shows at the end, too.
    if (handles_.size() >= kDeviceCallsUnderWay) {
      (void)WaitFor(*handles_[handles_.size() - kDeviceCallsUnderWay], options_.pulse);
    }
    LS_RETURN_IF_ERROR(stream.Record(*filled_));
    const bool exact = sums_integers();
    handles_.push_back(on_device->Reduce(tag_,
                                         {.tensors = tables_[static_cast<size_t>(bucket)].get(),
                                          .size = range_of(bucket).size,
                                          .sums = exact ? sums(bucket) : nullptr,
                                          .exponents = exact ? exponents() : nullptr,
                                          .floats = floats(bucket)},
                                         *filled_));
    return absl::OkStatus();
  }
  if (floats_.in_place()) {
    LS_RETURN_IF_ERROR(stream.Synchronize());
    SubmitToHost(bucket);
    return absl::OkStatus();
  }
  if (!goes_over_host()) {
    if (!sums_integers()) return absl::OkStatus();
    return math_.Dequantize(stream, *tables_[static_cast<size_t>(bucket)], 0, range_of(bucket).size, sums(bucket),
                            exponents(), floats(bucket));
  }
  const FlatRange range = range_of(bucket);
  const MirroredBuffer& run = sums_integers() ? sums_ : floats_;
  const size_t element = sums_integers() ? sizeof(int64_t) : sizeof(float);
  LS_RETURN_IF_ERROR(stream.Record(*filled_));
  LS_RETURN_IF_ERROR(copies_->WaitFor(*filled_));
  LS_RETURN_IF_ERROR(
      run.ToHost(*copies_, static_cast<size_t>(range.offset) * element, static_cast<size_t>(range.size) * element));
  LS_RETURN_IF_ERROR(copies_->Record(*staged_[static_cast<size_t>(bucket)]));
  return SubmitStaged(/*wait=*/false);
}

// Hands the communicator, in order, every bucket whose copy has come to the host.
absl::Status GradientExchange::SubmitStaged(bool wait) {
  while (goes_over_host() && submitted_ < sent_) {
    device::Event& staged = *staged_[static_cast<size_t>(submitted_)];
    if (!wait && !staged.Ready()) return absl::OkStatus();
    LS_RETURN_IF_ERROR(staged.Wait());
    SubmitToHost(submitted_);
  }
  return absl::OkStatus();
}

void GradientExchange::SubmitToHost(int bucket) {
  ++submitted_;
  const FlatRange range = range_of(bucket);
  auto* const all_floats = reinterpret_cast<float*>(floats_.on_host());
  const absl::Span<float> floats(all_floats + range.offset, static_cast<size_t>(range.size));
  if (options_.reduction == ReductionMode::kFast) {
    handles_.push_back(communicator_->AllReduceSum(tag_, floats));
    return;
  }
  const auto* const sums = reinterpret_cast<const int64_t*>(sums_.on_host()) + range.offset;
  ExactAddends addends = {.integers = absl::MakeConstSpan(sums, floats.size())};
  if (keeps_values_) addends = {.values = {options_.buckets[static_cast<size_t>(bucket)], floats.size()}};
  const auto* const exponents = reinterpret_cast<const int32_t*>(exponents_.on_host());
  std::vector<ExactRun> runs;
  options_.layout.ForEachTensorIn(range, [&](int tensor, FlatRange part) {
    runs.push_back({.begin = part.offset - range.offset, .size = part.size, .exponent = exponents[tensor]});
  });
  handles_.push_back(communicator_->AllReduceExact(tag_, addends, floats, runs));
}

absl::Status GradientExchange::WaitForPasses() {
  if (passes_done_) return absl::OkStatus();
  LS_CHECK(added_ == own_shards(), "every shard is added before the attempt ends");
  const NowDoing waiting("waiting for the device to finish its passes");
  LS_RETURN_IF_ERROR(records_.ToHost(*options_.stream, 0, record_bytes()));
  LS_RETURN_IF_ERROR(SubmitStaged(/*wait=*/true));
  LS_RETURN_IF_ERROR(options_.stream->Synchronize());
  passes_done_ = true;
  return absl::OkStatus();
}

absl::Status GradientExchange::SendWord(const WordShape& shape, const ControlContribution& slot) {
  LS_RETURN_IF_ERROR(WaitForPasses());
  const Profiler::Scope scope(options_.profiler, ProfileTrack::kReduction, "(send the word)");
  RankWord word{.tag = tag_};
  word.control = slot;
  const std::byte* const records = records_.on_host();
  word.magnitudes.resize(options_.layout.tensors().size());
  std::memcpy(word.magnitudes.data(), records, word.magnitudes.size() * sizeof(uint32_t));
  // A float64's slot is its bits.
  const std::vector<int>& own = shards_[static_cast<size_t>(communicator_->rank())];
  word.slots.resize((record_bytes() - totals_at()) / sizeof(uint64_t));
  for (int i = 0; i < own_shards(); ++i) {
    const auto at = std::lower_bound(own.begin(), own.end(), order_[static_cast<size_t>(i)]) - own.begin();
    std::memcpy(word.slots.data() + at * options_.slots_per_shard, records + row_at(i), row_bytes());
  }
  const std::vector<int64_t> blocks = WordBlockBytes(shape);
  word_blocks_.assign(static_cast<size_t>(std::accumulate(blocks.begin(), blocks.end(), int64_t{0})), 0);
  LS_RETURN_IF_ERROR(PackWord(shape, communicator_->rank(), word, absl::MakeSpan(word_blocks_)));
  word_handle_ = communicator_->AllGather(tag_, absl::MakeSpan(word_blocks_), blocks);
  return absl::OkStatus();
}

absl::Status GradientExchange::WaitForAll(absl::Status outcome) {
  const bool copied = goes_over_host();
  for (size_t b = 0; b < handles_.size(); ++b) {
    const Profiler::Scope scope(options_.profiler, ProfileTrack::kReduction, "(reduce)");
    const NowDoing reducing("all-reduce of bucket ", b + 1, " of ", handles_.size(), " with ",
                            communicator_->size() - 1, " peers");
    absl::Status status = WaitFor(*handles_[b], options_.pulse);
    if (status.ok() && outcome.ok() && copied) {
      const FlatRange range = range_of(static_cast<int>(b));
      status = floats_.ToDevice(*options_.stream, static_cast<size_t>(range.offset) * sizeof(float),
                                static_cast<size_t>(range.size) * sizeof(float));
    }
    if (outcome.ok()) outcome = status;
  }
  if (word_handle_ != nullptr) {
    const Profiler::Scope scope(options_.profiler, ProfileTrack::kReduction, "(wait for the word)");
    const NowDoing gathering("gathering the control word with ", communicator_->size() - 1, " peers");
    const absl::Status status = WaitFor(*word_handle_, options_.pulse);
    if (outcome.ok()) outcome = status;
  }
  handles_.clear();
  word_handle_ = nullptr;
  return outcome;
}

absl::StatusOr<ReducedWord> GradientExchange::Finish(const ControlContribution& slot, const absl::Status& early) {
  const WordShape shape{.generation = communicator_->generation(),
                        .ranks = communicator_->size(),
                        .logical_shards = options_.logical_shards,
                        .tensors = static_cast<int>(options_.layout.tensors().size()),
                        .slots_per_shard = options_.slots_per_shard,
                        .shards = shards_};
  absl::Status outcome = early.ok() ? SendWord(shape, slot) : early;
  if (!outcome.ok()) communicator_->Abort(outcome);
  outcome = WaitForAll(outcome);
  if (outcome.ok()) return FoldWords(shape, word_blocks_);
  communicator_->Abort(outcome);
  // The next attempt writes what is still read; a failure of the device shows there again.
  const bool done = options_.stream->Synchronize().ok() && (copies_ == nullptr || copies_->Synchronize().ok());
  // A device reduces in place.
  const bool whole = communicator_->on_device() == nullptr || sent_ == 0;
  broken_ = done && whole && began_ && sums_integers();
  return outcome;
}

const float* GradientExchange::gradient(int tensor) const {
  const auto& buckets = options_.layout.buckets();
  const auto after = std::upper_bound(buckets.begin(), buckets.end(), tensor,
                                      [](int t, const Bucket& bucket) { return t < bucket.first_tensor; });
  const auto bucket = static_cast<int>(after - buckets.begin()) - 1;
  const float* const begin = takes_as_it_is() ? options_.buckets[static_cast<size_t>(bucket)] : floats(bucket);
  return begin + (options_.layout.tensors()[static_cast<size_t>(tensor)].offset - range_of(bucket).offset);
}

absl::StatusOr<int> GradientExchange::FirstNonFinite() {
  device::Stream& stream = *options_.stream;
  const size_t bytes = options_.layout.tensors().size() * sizeof(uint32_t);
  LS_RETURN_IF_ERROR(stream.Zero(records_.on_device(), bytes));
  for (size_t b = 0; b < tables_.size(); ++b) {
    LS_RETURN_IF_ERROR(math_.FindMagnitudes(stream, *tables_[b], floats(static_cast<int>(b)), magnitudes()));
  }
  LS_RETURN_IF_ERROR(records_.ToHost(stream, 0, bytes));
  LS_RETURN_IF_ERROR(stream.Synchronize());
  const auto* const found = reinterpret_cast<const uint32_t*>(records_.on_host());
  const auto* const end = found + options_.layout.tensors().size();
  const auto* const first = std::find_if(found, end, IsNonFinite);
  return first == end ? -1 : static_cast<int>(first - found);
}

}  // namespace lockstep::worker
