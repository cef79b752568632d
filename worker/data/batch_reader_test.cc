#include "worker/data/batch_reader.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "worker/data/permutation.h"

namespace lockstep::worker {
namespace {

// Sample i is the two floats i and i + 0.5 with the label i % 10.
class CountingSource : public DataSource {
 public:
  explicit CountingSource(int64_t samples)
      : samples_(samples), fields_({{"inputs", DType::kF32, {2}}, {"labels", DType::kI64, {}}}) {}

  int64_t num_samples() const override { return samples_; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    std::byte* to = out.data();
    for (const int64_t index : indices) {
      const float values[2] = {static_cast<float>(index), static_cast<float>(index) + 0.5f};
      const int64_t label = index % 10;
      std::memcpy(to, field == 0 ? static_cast<const void*>(values) : &label, 8);
      to += 8;
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  int64_t samples_;
  std::vector<TensorSpec> fields_;
  std::string hash_ = std::string(64, '0');
};

TEST_CASE("permutation: a bijection for every size, and another for every seed and epoch", "[data]") {
  std::mt19937_64 random(1);
  std::vector<int64_t> sizes;
  for (int64_t n = 1; n <= 70; ++n) sizes.push_back(n);
  for (const int64_t n : {255, 256, 257, 1000, 4096, 60000}) sizes.push_back(n);
  for (const int64_t n : sizes) {
    const Permutation order(random(), random(), n);
    std::vector<bool> seen(static_cast<size_t>(n), false);
    bool bijective = true;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = order.At(i);
      bijective = bijective && value >= 0 && value < n && !seen[static_cast<size_t>(value)];
      if (bijective) seen[static_cast<size_t>(value)] = true;
    }
    INFO(n);
    CHECK(bijective);
  }
  const Permutation a(1, 0, 1000), b(2, 0, 1000), c(1, 1, 1000);
  int same_seed = 0, same_epoch = 0, fixed = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    same_seed += a.At(i) == b.At(i);
    same_epoch += a.At(i) == c.At(i);
    fixed += a.At(i) == i;
  }
  CHECK(std::max({same_seed, same_epoch, fixed}) < 10);
  const Permutation large(5, 7, (int64_t{1} << 62) - 1);
  CHECK(large.At(0) != large.At((int64_t{1} << 62) - 2));
}

TEST_CASE("permutation: every element is as likely in every place", "[data]") {
  constexpr int kSize = 10, kSeeds = 5000;
  std::vector<std::vector<int>> counts(kSize, std::vector<int>(kSize));
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Permutation order(seed, seed % 7, kSize);
    for (int i = 0; i < kSize; ++i) ++counts[static_cast<size_t>(i)][static_cast<size_t>(order.At(i))];
  }
  double chi2 = 0;
  for (const auto& row : counts) {
    for (const int count : row) chi2 += (count - kSeeds / 10.0) * (count - kSeeds / 10.0) / (kSeeds / 10.0);
  }
  // 81 degrees of freedom: 99.99% of fair shuffles are below 134.
  CHECK(chi2 < 134);
}

TEST_CASE("permutation: the order is fixed for good, or resumed jobs would see other samples", "[data]") {
  const Permutation order(42, 3, 60000);
  const std::vector<int64_t> expected = {26930, 27522, 30999, 14511};
  for (int64_t i = 0; i < 4; ++i) CHECK(order.At(i) == expected[static_cast<size_t>(i)]);
}

TEST_CASE("stream: each sample exactly once per epoch, whatever the batches", "[data]") {
  std::mt19937_64 random(3);
  for (int round = 0; round < 60; ++round) {
    const int64_t n = 1 + static_cast<int64_t>(random() % 300);
    const int64_t shards = 1 + static_cast<int64_t>(random() % 8);
    const int64_t batch = shards * (1 + static_cast<int64_t>(random() % 40));
    const SampleStream stream(random(), n);
    const int64_t steps = (3 * n + batch - 1) / batch;
    std::vector<std::vector<int>> seen(3, std::vector<int>(static_cast<size_t>(n)));
    std::vector<int64_t> samples(static_cast<size_t>(batch / shards));
    for (int64_t step = 1; step <= steps; ++step) {
      for (int64_t shard = 0; shard < shards; ++shard) {
        const int64_t first = ShardPosition(step, shard, batch, shards);
        stream.SamplesAt(first, absl::MakeSpan(samples));
        for (size_t i = 0; i < samples.size(); ++i) {
          const int64_t position = first + static_cast<int64_t>(i);
          REQUIRE(samples[i] == stream.SampleAt(position));
          const int64_t epoch = stream.EpochAt(position);
          if (epoch < 3) ++seen[static_cast<size_t>(epoch)][static_cast<size_t>(samples[i])];
        }
      }
    }
    INFO("n " << n << ", batch " << batch << ", shards " << shards);
    for (const auto& epoch : seen) {
      CHECK(std::all_of(epoch.begin(), epoch.end(), [](int count) { return count == 1; }));
    }
  }
}

TEST_CASE("reader: batches hold the stream's samples, in the rank's order of shards", "[data]") {
  const CountingSource source(103);
  const SampleStream stream(9, 103);
  BatchReader reader(&source, &stream, {.global_batch_size = 24, .logical_shards = 4, .depth = 3});
  reader.Seek(5, {3, 1});

  for (int64_t step = 5; step < 30; ++step) {
    for (const int64_t shard : {3, 1}) {
      const Batch& batch = **reader.Next();
      REQUIRE(batch.step == step);
      REQUIRE(batch.logical_shard == shard);
      for (int64_t i = 0; i < 6; ++i) {
        const int64_t sample = stream.SampleAt((step - 1) * 24 + shard * 6 + i);
        REQUIRE(batch.samples[static_cast<size_t>(i)] == sample);
        REQUIRE(batch.fields[0].elements<float>()[static_cast<size_t>(2 * i + 1)] == static_cast<float>(sample) + 0.5f);
        REQUIRE(batch.fields[1].elements<int64_t>()[static_cast<size_t>(i)] == sample % 10);
      }
    }
  }
  CHECK(reader.waited() >= absl::ZeroDuration());
}

TEST_CASE("reader: batches lie in the blocks that it was given, each in one of its own", "[data]") {
  const CountingSource source(103);
  const SampleStream stream(9, 103);
  const size_t bytes = BatchReader::BytesOfBatch(source, 6);
  CHECK(bytes == 64 + 64);
  std::vector<Tensor> memory;
  BatchReader::Options options{.global_batch_size = 24, .logical_shards = 4};
  for (int i = 0; i < BatchReader::BatchesAlive(options.depth); ++i) {
    memory.push_back(Tensor::Zeros(DType::kU8, {static_cast<int64_t>(bytes)}));
    options.blocks.push_back(memory.back().data());
  }
  BatchReader reader(&source, &stream, options);

  for (int64_t step = 1; step < 60; ++step) {
    // Also where a batch is read while all of them go back.
    if (step % 7 == 1) reader.Seek(step, {2});
    const Batch& batch = **reader.Next();
    REQUIRE(batch.step == step);
    CHECK(batch.fields.empty());
    const std::byte* const block = batch.bytes[0].data();
    CHECK(std::count(options.blocks.begin(), options.blocks.end(), block) == 1);
    CHECK(batch.bytes[1].data() == block + 64);
    for (size_t i = 0; i < 6; ++i) {
      const int64_t sample = stream.SampleAt((step - 1) * 24 + 2 * 6 + static_cast<int64_t>(i));
      CHECK(reinterpret_cast<const float*>(block)[2 * i + 1] == static_cast<float>(sample) + 0.5f);
      CHECK(reinterpret_cast<const int64_t*>(block + 64)[i] == sample % 10);
    }
  }
}

TEST_CASE("reader: after a seek nothing of the old place is delivered", "[data]") {
  const CountingSource source(50);
  const SampleStream stream(1, 50);
  BatchReader reader(&source, &stream, {.global_batch_size = 8, .logical_shards = 2, .depth = 4});
  std::mt19937 random(4);
  for (int round = 0; round < 200; ++round) {
    const int64_t step = 1 + static_cast<int64_t>(random() % 100);
    const int64_t shard = static_cast<int64_t>(random() % 2);
    reader.Seek(step, {shard});
    const int reads = static_cast<int>(random() % 4);
    for (int i = 0; i < reads; ++i) {
      const Batch& batch = **reader.Next();
      REQUIRE(batch.step == step + i);
      REQUIRE(batch.logical_shard == shard);
    }
  }
}

TEST_CASE("reader: it ends without having been used, and while it is full", "[data]") {
  const CountingSource source(50);
  const SampleStream stream(1, 50);
  { BatchReader unused(&source, &stream, {.global_batch_size = 8, .logical_shards = 2, .depth = 1}); }
  BatchReader full(&source, &stream, {.global_batch_size = 8, .logical_shards = 2, .depth = 2});
  full.Seek(1, {0, 1});
  CHECK((*full.Next())->step == 1);
}

TEST_CASE("evaluation: every sample once, in order, the last batch padded and masked", "[data]") {
  for (const int64_t n : {1, 7, 8, 9, 16, 23}) {
    const CountingSource source(n);
    REQUIRE(NumEvalBatches(source, 8) == (n + 7) / 8);
    EvalBatch batch;
    int64_t next = 0;
    for (int64_t b = 0; b < NumEvalBatches(source, 8); ++b) {
      REQUIRE(ReadEvalBatch(source, 8 * b, 8, batch).ok());
      REQUIRE(batch.fields[0].shape() == Shape{8, 2});
      for (int64_t i = 0; i < 8; ++i) {
        const bool counts = next < n;
        CHECK(batch.mask.elements<float>()[static_cast<size_t>(i)] == (counts ? 1.0f : 0.0f));
        CHECK(batch.fields[0].elements<float>()[static_cast<size_t>(2 * i)] == static_cast<float>(counts ? next : 0));
        next += counts;
      }
      CHECK(batch.valid == std::min<int64_t>(8, n - 8 * b));
    }
    CHECK(next == n);
  }
}

// Forgets to write the first field of every sample.
class ForgetfulSource : public CountingSource {
 public:
  using CountingSource::CountingSource;
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    return field == 0 ? absl::OkStatus() : CountingSource::Read(field, indices, out);
  }
};

TEST_CASE("reader: what a source leaves out of a batch shows where memory is poisoned", "[data]") {
  const ForgetfulSource source(23);
  const SampleStream stream(9, 23);
  for (const bool poison : {false, true}) {
    CAPTURE(poison);
    BatchReader reader(&source, &stream, {.global_batch_size = 4, .depth = 1, .poison = poison});
    reader.Seek(1, {0});
    EvalBatch evaluated;
    evaluated.poison = poison;
    for (int64_t i = 0; i < 5; ++i) {
      const absl::Span<const std::byte> bytes = (*reader.Next())->bytes[0];
      CHECK(std::isnan(reinterpret_cast<const float*>(bytes.data())[7]) == poison);
      REQUIRE(ReadEvalBatch(source, i % 3 * 8, 8, evaluated).ok());
      const absl::Span<float> floats = evaluated.fields[0].elements<float>();
      CHECK(std::all_of(floats.begin(), floats.end(), [&](float x) { return std::isnan(x) == poison; }));
      std::fill(floats.begin(), floats.end(), 0.0f);
      for (const float mask : evaluated.mask.elements<float>()) CHECK((mask == 0.0f || mask == 1.0f));
      CHECK(evaluated.fields[1].elements<int64_t>()[0] == i % 3 * 8 % 10);
    }
  }
}

TEST_CASE("reader: batches are poisoned unasked in the builds that poison memory", "[data]") {
  CHECK(BatchReader::Options{}.poison == kPoisonsMemory);
  CHECK(EvalBatch{}.poison == kPoisonsMemory);
}

}  // namespace
}  // namespace lockstep::worker
