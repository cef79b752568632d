#include "worker/data/augmentation.h"

#include <algorithm>
#include <cstring>

#include "common/math/math.h"
#include "common/random/below.h"
#include "common/random/random.h"
#include "worker/data/channel_affine.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kAugmentStream = StreamOfName("data.augment");

constexpr uint64_t kCropStream = StreamOfName("data.augment.resized_crop");
constexpr uint64_t kCropAttempts = 10;
constexpr double kWidest = 4.0 / 3;                      // width to height; the narrowest is its inverse
constexpr double kLogOfWidest = 0.28768207245178092744;  // natural

// In [0, 1).
double Fraction(uint32_t bits) { return bits * 0x1p-32; }

int64_t Nearest(double value) { return static_cast<int64_t>(value + 0.5); }

bool IsImage(const TensorSpec& field) { return field.dtype == DType::kF32 && field.shape.size() == 3; }

}  // namespace

Augmentation::Augmentation(const job::Augment& rule, const Normalisation& normalisation, uint64_t seed,
                           absl::Span<const TensorSpec> fields)
    : flip_(rule.flip()), padding_(rule.crop_padding()), seed_(seed), empty_(MakeChannelAffine(normalisation).offset) {
  if (rule.resized_crop_size() == 2) {
    least_share_ = rule.resized_crop(0);
    most_share_ = rule.resized_crop(1);
  }
  for (const TensorSpec& field : fields) images_.push_back(IsImage(field) ? field.shape : Shape());
}

ImageRegion Augmentation::RegionAt(int64_t position, ImageSize size) const {
  const RandomStream draws = RandomStream::For(seed_, kCropStream, static_cast<uint64_t>(position), 0, 0);
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  for (uint64_t attempt = 0; attempt < kCropAttempts; ++attempt) {
    const auto bits = draws.Block(attempt);
    const double area = height * width * (least_share_ + Fraction(bits[0]) * (most_share_ - least_share_));
    const double ratio = Exp((2 * Fraction(bits[1]) - 1) * kLogOfWidest);
    const ImageSize part{Nearest(SquareRoot(area / ratio)), Nearest(SquareRoot(area * ratio))};
    if (part.height < 1 || part.height > size.height || part.width < 1 || part.width > size.width) continue;
    return {Below(bits[2], size.height - part.height + 1), Below(bits[3], size.width - part.width + 1), part};
  }
  // The largest part in the middle whose ratio is allowed.
  const ImageSize part{std::min(size.height, std::max<int64_t>(1, Nearest(width * kWidest))),
                       std::min(size.width, std::max<int64_t>(1, Nearest(height * kWidest)))};
  return {(size.height - part.height) / 2, (size.width - part.width) / 2, part};
}

Augmentation::Change Augmentation::ChangeAt(int64_t position) const {
  const auto bits = RandomStream::For(seed_, kAugmentStream, static_cast<uint64_t>(position), 0, 0).Block(0);
  return {.flip = flip_ && (bits[0] >> 31) != 0,
          .down = Below(bits[1], 2 * padding_ + 1) - padding_,
          .right = Below(bits[2], 2 * padding_ + 1) - padding_};
}

void Augmentation::Apply(int field, int64_t first, absl::Span<std::byte> samples) const {
  const Shape& shape = images_[static_cast<size_t>(field)];
  if (shape.empty()) return;
  const int64_t elements = NumElements(shape);
  const auto count = static_cast<int64_t>(samples.size()) / (elements * static_cast<int64_t>(sizeof(float)));
  auto* image = reinterpret_cast<float*>(samples.data());
  std::vector<float> read(static_cast<size_t>(elements));
  for (int64_t i = 0; i < count; ++i, image += elements) {
    const Change change = ChangeAt(first + i);
    if (!change.flip && change.down == 0 && change.right == 0) continue;
    std::memcpy(read.data(), image, read.size() * sizeof(float));
    Draw(change, shape, read.data(), image);
  }
}

void Augmentation::Draw(const Change& change, const Shape& shape, const float* from, float* to) const {
  const int64_t height = shape[1], width = shape[2];
  // The part of a row that stays in sight, where it goes; and where it comes from.
  const int64_t begin = std::clamp<int64_t>(change.right, 0, width);
  const int64_t end = std::clamp<int64_t>(width + change.right, 0, width);
  for (int64_t c = 0; c < shape[0]; ++c) {
    const float empty = empty_[empty_.size() == 1 ? 0 : static_cast<size_t>(c)];
    for (int64_t y = 0; y < height; ++y, to += width) {
      const int64_t row = y - change.down;
      if (row < 0 || row >= height || begin >= end) {
        std::fill_n(to, width, empty);
        continue;
      }
      const float* const seen = from + (c * height + row) * width + begin - change.right;
      std::fill(to, to + begin, empty);
      std::copy(seen, seen + (end - begin), to + begin);
      std::fill(to + end, to + width, empty);
      if (change.flip) std::reverse(to, to + width);
    }
  }
}

}  // namespace lockstep::worker
