#include "worker/data/augmentation.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "worker/data/batch_reader.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kHeight = 4, kWidth = 5;

job::Augment Rule(bool flip, int64_t padding) {
  job::Augment rule;
  rule.set_flip(flip);
  rule.set_crop_padding(padding);
  return rule;
}

// Pixel (c, y, x) of every sample is 100 c + 10 y + x + 1; the second field is a vector.
class SameImage : public DataSource {
 public:
  int64_t num_samples() const override { return 50; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    auto* to = reinterpret_cast<float*>(out.data());
    for (size_t i = 0; i < indices.size(); ++i) {
      for (int64_t e = 0; e < NumElements(fields_[static_cast<size_t>(field)].shape); ++e) {
        *to++ = field == 1 ? 7.0f : Pixel(e / (kHeight * kWidth), e / kWidth % kHeight, e % kWidth);
      }
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

  static float Pixel(int64_t c, int64_t y, int64_t x) { return static_cast<float>(100 * c + 10 * y + x + 1); }

 private:
  const std::vector<TensorSpec> fields_ = {{"inputs", DType::kF32, {2, kHeight, kWidth}}, {"labels", DType::kF32, {3}}};
  const std::string hash_ = "same";
};

using Move = std::pair<int64_t, int64_t>;

// The image moved by (down, right), then mirrored, by its definition.
std::vector<float> Moved(const Move& move, bool flip, const std::vector<float>& empty) {
  std::vector<float> image;
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t y = 0; y < kHeight; ++y) {
      for (int64_t x = 0; x < kWidth; ++x) {
        const int64_t row = y - move.first;
        const int64_t column = (flip ? kWidth - 1 - x : x) - move.second;
        const bool inside = row >= 0 && row < kHeight && column >= 0 && column < kWidth;
        image.push_back(inside ? SameImage::Pixel(c, row, column) : empty[static_cast<size_t>(c)]);
      }
    }
  }
  return image;
}

// The images that training sees of shard `shard` of step `step`.
std::vector<std::vector<float>> Seen(const Augmentation* augmentation, int64_t step, int64_t shard, int64_t shards) {
  const SameImage source;
  const SampleStream stream(3, source.num_samples());
  BatchReader::Options options{.global_batch_size = 20, .logical_shards = shards};
  options.augmentation = augmentation;
  BatchReader reader(&source, &stream, options);
  reader.Seek(step, {shard});
  const Batch& batch = **reader.Next();
  const auto* pixels = reinterpret_cast<const float*>(batch.bytes[0].data());
  std::vector<std::vector<float>> images;
  for (size_t i = 0; i < batch.samples.size(); ++i) {
    images.emplace_back(pixels + i * 2 * kHeight * kWidth, pixels + (i + 1) * 2 * kHeight * kWidth);
  }
  const auto* const vectors = reinterpret_cast<const float*>(batch.bytes[1].data());
  CHECK(std::all_of(vectors, vectors + batch.samples.size() * 3, [](float v) { return v == 7.0f; }));
  return images;
}

}  // namespace

TEST_CASE("augmentation: every move and both sides come, as often as each other, and nothing else", "[data]") {
  const SameImage source;
  const Normalisation normalisation{.mean = {0.5, 1.0}, .std = {0.25, 2.0}};
  const std::vector<float> empty = {-2.0f, -0.5f};
  const Augmentation augmentation(Rule(true, 2), normalisation, 11, source.fields());
  std::map<std::vector<float>, int> counts;
  constexpr int kSteps = 500, kBatch = 20;
  for (int64_t step = 1; step <= kSteps; ++step) {
    for (const auto& image : Seen(&augmentation, step, 0, 1)) ++counts[image];
  }

  CHECK(counts.size() == 50);
  double chi2 = 0;
  constexpr double kExpected = kSteps * kBatch / 50.0;
  for (int64_t down = -2; down <= 2; ++down) {
    for (int64_t right = -2; right <= 2; ++right) {
      for (const bool flip : {false, true}) {
        const int count = counts[Moved({down, right}, flip, empty)];
        chi2 += (count - kExpected) * (count - kExpected) / kExpected;
      }
    }
  }
  CHECK(chi2 < 85);  // 49 degrees of freedom: one in a thousand is above
}

TEST_CASE("augmentation: what is left out of a rule does not happen", "[data]") {
  const SameImage source;
  const std::vector<float> plain = Moved({0, 0}, false, {0, 0}), flipped = Moved({0, 0}, true, {0, 0});
  const Augmentation nothing(Rule(false, 0), {}, 11, source.fields()), flips(Rule(true, 0), {}, 11, source.fields());
  for (const auto& image : Seen(&nothing, 1, 0, 1)) CHECK(image == plain);
  for (const auto& image : Seen(&flips, 1, 0, 1)) CHECK((image == plain || image == flipped));
}

TEST_CASE("augmentation: a sample is changed alike in every split, and anew in each epoch", "[data]") {
  const SameImage source;
  const Augmentation augmentation(Rule(true, 2), {}, 11, source.fields());
  const auto whole = Seen(&augmentation, 3, 0, 1);
  std::vector<std::vector<float>> parts;
  for (int64_t shard = 0; shard < 4; ++shard) {
    for (auto& image : Seen(&augmentation, 3, shard, 4)) parts.push_back(std::move(image));
  }
  CHECK(parts == whole);
  CHECK(Seen(&augmentation, 3, 0, 1) == whole);
  // 20 samples are two fifths of an epoch: the same places of two epochs.
  CHECK(Seen(&augmentation, 1, 0, 1) != Seen(&augmentation, 6, 0, 1));
  const Augmentation other(Rule(true, 2), {}, 12, source.fields());
  CHECK(Seen(&other, 3, 0, 1) != whole);
}

TEST_CASE("augmentation: parts are cut out as torchvision's RandomResizedCrop draws them", "[data]") {
  // Means over 40,000 draws of torchvision 0.29: share of the area, logarithm of width to height, top, left.
  struct Case {
    ImageSize size;
    double least, most;
    double share, log_ratio, top, left;
  };
  const SameImage source;
  for (const Case& c : {Case{{60, 100}, 0.08, 1.0, 0.3594, 0.0314, 7.9345, 26.8716},
                        Case{{64, 64}, 0.25, 0.5, 0.3752, -0.0011, 12.4154, 12.4965},
                        Case{{20, 200}, 0.5, 1.0, 0.1350, 0.3001, 0, 86}}) {
    CAPTURE(c.size.height, c.size.width);
    job::Augment rule;
    rule.add_resized_crop(c.least);
    rule.add_resized_crop(c.most);
    const Augmentation crops(rule, {}, 11, source.fields());
    REQUIRE(crops.crops());
    constexpr int kDraws = 20000;
    double share = 0, log_ratio = 0, top = 0, left = 0;
    for (int64_t position = 0; position < kDraws; ++position) {
      const ImageRegion region = crops.RegionAt(position, c.size);
      REQUIRE((region.top >= 0 && region.top + region.size.height <= c.size.height && region.size.height > 0));
      REQUIRE((region.left >= 0 && region.left + region.size.width <= c.size.width && region.size.width > 0));
      const auto height = static_cast<double>(region.size.height), width = static_cast<double>(region.size.width);
      share += height * width / static_cast<double>(c.size.height * c.size.width) / kDraws;
      log_ratio += std::log(width / height) / kDraws;
      top += static_cast<double>(region.top) / kDraws;
      left += static_cast<double>(region.left) / kDraws;
    }
    CHECK(std::abs(share - c.share) < 0.007);
    CHECK(std::abs(log_ratio - c.log_ratio) < 0.007);
    CHECK(std::abs(top - c.top) < 0.4);
    CHECK(std::abs(left - c.left) < 0.8);
  }
  const Augmentation nothing(Rule(true, 1), {}, 11, source.fields());
  CHECK_FALSE(nothing.crops());
}

}  // namespace lockstep::worker
