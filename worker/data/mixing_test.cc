#include "worker/data/mixing.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "worker/data/batch_reader.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kMixedRows = 6, kMixedColumns = 5, kPixels = 2 * kMixedRows * kMixedColumns, kMixedBatch = 24;

job::Augment Mixed(double mixup, double cutmix) {
  job::Augment rule;
  if (mixup > 0) rule.set_mixup(mixup);
  if (cutmix > 0) rule.set_cutmix(cutmix);
  return rule;
}

// Every pixel tells which sample it is of, and where; the label is the sample.
class NumberedImages : public DataSource {
 public:
  int64_t num_samples() const override { return 60; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    for (size_t i = 0; i < indices.size(); ++i) {
      if (field == 1) {
        reinterpret_cast<int64_t*>(out.data())[i] = indices[i];
        continue;
      }
      for (int64_t p = 0; p < kPixels; ++p) {
        reinterpret_cast<float*>(out.data())[static_cast<int64_t>(i) * kPixels + p] = PixelOf(indices[i], p);
      }
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

  static float PixelOf(int64_t sample, int64_t pixel) {
    return 0.37f * static_cast<float>(sample) - 0.11f * static_cast<float>(pixel);
  }

 private:
  const std::vector<TensorSpec> fields_ = {{"inputs", DType::kF32, {2, kMixedRows, kMixedColumns}},
                                           {"labels", DType::kI64, {}}};
  const std::string hash_ = "numbered";
};

// What training sees of one sample.
struct SeenSample {
  int64_t label = 0, partner = 0;
  float share = 0;
  std::vector<float> image;
  friend bool operator==(const SeenSample&, const SeenSample&) = default;
};

// `given`: the batches lie in memory that the reader was given.
std::vector<SeenSample> SeenMixed(const Mixing& mixing, int64_t step, int64_t shard, int64_t shards,
                                  bool given = false) {
  const NumberedImages source;
  std::vector<Tensor> memory;
  const SampleStream stream(3, source.num_samples());
  BatchReader::Options options{.global_batch_size = kMixedBatch, .logical_shards = shards};
  options.poison = true;
  options.mixing = &mixing;
  for (int i = 0; given && i < BatchReader::BatchesAlive(options.depth); ++i) {
    const size_t bytes = BatchReader::BytesOfBatch(source, kMixedBatch / shards, &mixing);
    memory.push_back(Tensor::Zeros(DType::kU8, {static_cast<int64_t>(bytes)}));
    options.blocks.push_back(reinterpret_cast<std::byte*>(memory.back().data()));
  }
  BatchReader reader(&source, &stream, options);
  reader.Seek(step, {shard});
  const Batch& batch = **reader.Next();
  std::vector<SeenSample> seen(batch.samples.size());
  for (size_t i = 0; i < seen.size(); ++i) {
    const auto* const image = reinterpret_cast<const float*>(batch.bytes[0].data()) + i * kPixels;
    seen[i] = {.label = reinterpret_cast<const int64_t*>(batch.bytes[1].data())[i],
               .partner = reinterpret_cast<const int64_t*>(batch.bytes[2].data())[i],
               .share = reinterpret_cast<const float*>(batch.bytes[3].data())[i],
               .image = {image, image + kPixels}};
  }
  return seen;
}

}  // namespace

TEST_CASE("mixing: images are mixed with those of the sample before in the pass, by the share of the loss", "[data]") {
  const NumberedImages source;
  constexpr int64_t kPass = 4;
  const Mixing mixing(Mixed(0.4, 0), 11, kPass, source.fields());

  const std::vector<SeenSample> seen = SeenMixed(mixing, 3, 1, 2);

  REQUIRE(seen.size() == kMixedBatch / 2);
  for (size_t i = 0; i < seen.size(); ++i) {
    CAPTURE(i);
    const size_t before = i % kPass == 0 ? i + kPass - 1 : i - 1;
    CHECK(seen[i].partner == seen[before].label);
    const double share = seen[i].share;
    CHECK(share * 0x1p24 == std::floor(share * 0x1p24));
    for (int64_t p = 0; p < kPixels; ++p) {
      const double mixed = share * NumberedImages::PixelOf(seen[i].label, p) +
                           (1 - share) * NumberedImages::PixelOf(seen[before].label, p);
      CHECK(std::abs(seen[i].image[static_cast<size_t>(p)] - mixed) <= 0x1p-22 * 32);
    }
  }
}

TEST_CASE("mixing: a rectangle of the partner is cut in, and the share is what is left of the area", "[data]") {
  const NumberedImages source;
  const Mixing mixing(Mixed(0, 1), 5, 8, source.fields());
  int cut = 0;
  for (int64_t step = 1; step <= 5; ++step) {
    const std::vector<SeenSample> seen = SeenMixed(mixing, step, 0, 1);
    for (size_t i = 0; i < seen.size(); ++i) {
      const Mixture mixture = mixing.MixtureAt((step - 1) * kMixedBatch + static_cast<int64_t>(i));
      REQUIRE((mixture.top >= 0 && mixture.top <= mixture.bottom && mixture.bottom <= kMixedRows));
      REQUIRE((mixture.left >= 0 && mixture.left <= mixture.right && mixture.right <= kMixedColumns));
      int64_t own = 0;
      for (int64_t p = 0; p < kPixels; ++p) {
        const int64_t row = p / kMixedColumns % kMixedRows, column = p % kMixedColumns;
        const bool inside =
            row >= mixture.top && row < mixture.bottom && column >= mixture.left && column < mixture.right;
        const int64_t of = inside ? seen[i].partner : seen[i].label;
        CHECK(seen[i].image[static_cast<size_t>(p)] == NumberedImages::PixelOf(of, p));
        own += !inside;
      }
      cut += own < kPixels;
      CHECK(std::abs(seen[i].share - static_cast<double>(own) / kPixels) <= 0x1p-24);
    }
  }
  CHECK(cut > 60);
}

TEST_CASE("mixing: rectangles are as large and lie where torchvision's CutMix has them", "[data]") {
  // The definition over 64 x 64 pixels, for a share s that is uniform and a middle that is any pixel: the mean of the
  // area that is cut out, and of the rows above it, in float64.
  const std::vector<TensorSpec> fields = {{"inputs", DType::kF32, {1, 64, 64}}, {"labels", DType::kI64, {}}};
  double area = 0, top = 0;
  constexpr int kShares = 2000;
  for (int i = 0; i < kShares; ++i) {
    const auto half = static_cast<int64_t>(0.5 * std::sqrt((i + 0.5) / kShares) * 64);
    double height = 0, above = 0;
    for (int64_t y = 0; y < 64; ++y) {
      height += static_cast<double>(std::min<int64_t>(y + half, 64) - std::max<int64_t>(y - half, 0)) / 64;
      above += static_cast<double>(std::max<int64_t>(y - half, 0)) / 64;
    }
    area += height * height / 4096 / kShares;
    top += above / kShares;
  }
  const Mixing mixing(Mixed(0, 1), 9, 2, fields);
  constexpr int64_t kMixtures = 20000;
  double share = 0, found_top = 0;
  for (int64_t position = 0; position < kMixtures; ++position) {
    const Mixture mixture = mixing.MixtureAt(position);
    share += mixture.share / kMixtures;
    found_top += static_cast<double>(mixture.top) / kMixtures;
  }

  CHECK(std::abs(1 - share - area) < 4 * 0.3 / std::sqrt(double{kMixtures}));
  CHECK(std::abs(found_top - top) < 4 * 20 / std::sqrt(double{kMixtures}));
}

TEST_CASE("mixing: a mixture is the same in every split of a batch into passes, and another one in each epoch",
          "[data]") {
  const NumberedImages source;
  const job::Augment rule = GENERATE(Mixed(0.4, 0), Mixed(0, 1), Mixed(0.4, 1));
  const Mixing mixing(rule, 11, 6, source.fields());
  const auto whole = SeenMixed(mixing, 3, 0, 1);
  std::vector<SeenSample> parts;
  for (int64_t shard = 0; shard < 4; ++shard) {
    for (SeenSample& sample : SeenMixed(mixing, 3, shard, 4)) parts.push_back(std::move(sample));
  }
  CHECK(parts == whole);
  CHECK(SeenMixed(mixing, 3, 0, 1) == whole);
  CHECK(SeenMixed(mixing, 3, 0, 1, /*given=*/true) == whole);
  const Mixing other(rule, 12, 6, source.fields());
  CHECK(SeenMixed(other, 3, 0, 1) != whole);
  // The shares of 60 positions, an epoch, and of the next 60.
  int alike = 0;
  for (int64_t position = 0; position < 60; ++position) {
    alike += mixing.MixtureAt(position).share == mixing.MixtureAt(position + 60).share;
  }
  CHECK(alike < 20);
}

TEST_CASE("mixing: with both ways each sample gets one of them, half of them either", "[data]") {
  const NumberedImages source;
  const Mixing mixing(Mixed(0.4, 1), 7, 2, source.fields());
  int cut = 0;
  constexpr int kSamples = 2000;
  for (int64_t position = 0; position < kSamples; ++position) cut += mixing.MixtureAt(position).cuts;
  CHECK(std::abs(cut - kSamples / 2) < 4 * std::sqrt(kSamples / 4.0));
}

TEST_CASE("mixing: a job that mixes nothing has none", "[data]") {
  const NumberedImages source;
  job::JobSpec job;
  CHECK(MakeMixing(job, 2, source.fields()) == nullptr);
  job.mutable_data()->mutable_augment()->set_flip(true);
  CHECK(MakeMixing(job, 2, source.fields()) == nullptr);
  job.mutable_data()->mutable_augment()->set_mixup(0.2);
  CHECK(MakeMixing(job, 2, source.fields()) != nullptr);
}

}  // namespace lockstep::worker
