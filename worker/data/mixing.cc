#include "worker/data/mixing.h"

#include <algorithm>
#include <cstring>

#include "common/graph/passes/training_graph.h"
#include "common/job/image_rules.h"
#include "common/math/math.h"
#include "common/random/below.h"
#include "common/random/beta.h"
#include "common/random/random.h"
#include "common/status/check.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kMixupStream = StreamOfName("data.augment.mixup");

// To the nearest multiple of 2^-24. REQUIRES: 0 <= share <= 1.
float RoundedShare(double share) { return static_cast<float>(static_cast<int32_t>(share * 0x1p24 + 0.5)) * 0x1p-24f; }

void Blend(float share, int64_t pixels, const float* partner, float* own) {
  const float rest = 1.0f - share;
  for (int64_t i = 0; i < pixels; ++i) own[i] = share * own[i] + rest * partner[i];
}

}  // namespace

Mixing::Mixing(const job::Augment& rule, uint64_t seed, int64_t pass_batch, absl::Span<const TensorSpec> fields)
    : mixup_(rule.mixup()), cutmix_(rule.cutmix()), seed_(seed), pass_batch_(pass_batch) {
  LS_CHECK((mixup_ > 0 || cutmix_ > 0) && pass_batch >= 2, "there are samples to mix");
  LS_CHECK(fields.size() >= 2, "there are images and a label");
  for (const TensorSpec& field : fields.subspan(0, fields.size() - 1)) {
    LS_CHECK(field.dtype == DType::kF32 && field.shape.size() == 3, "features are images");
    channels_.push_back(field.shape[0]);
    height_ = field.shape[1];
    width_ = field.shape[2];
  }
  fields_ = {{kPartnerLabelInput, fields.back().dtype, fields.back().shape}, {kShareInput, DType::kF32, {}}};
}

Mixture Mixing::MixtureAt(int64_t position) const {
  const RandomStream draws = RandomStream::For(seed_, kMixupStream, static_cast<uint64_t>(position), 0, 0);
  const auto bits = draws.Block(0);
  const bool cuts = cutmix_ > 0 && (mixup_ == 0 || (bits[0] >> 31) != 0);
  const double share = SymmetricBeta(cuts ? cutmix_ : mixup_, draws, 1);
  if (!cuts) return {.share = RoundedShare(share)};
  // Of that part of the area, around any pixel; what goes beyond the image is not there.
  const double half = 0.5 * SquareRoot(1 - share);
  const auto down = static_cast<int64_t>(half * static_cast<double>(height_));
  const auto across = static_cast<int64_t>(half * static_cast<double>(width_));
  const int64_t y = Below(bits[1], height_), x = Below(bits[2], width_);
  Mixture mixture{.cuts = true,
                  .top = std::max<int64_t>(y - down, 0),
                  .bottom = std::min(y + down, height_),
                  .left = std::max<int64_t>(x - across, 0),
                  .right = std::min(x + across, width_)};
  const int64_t area = (mixture.bottom - mixture.top) * (mixture.right - mixture.left);
  mixture.share = RoundedShare(1 - static_cast<double>(area) / static_cast<double>(height_ * width_));
  return mixture;
}

void Mixing::MixPass(absl::Span<const Mixture> mixtures, float* images, int64_t channels) const {
  const int64_t pixels = channels * height_ * width_;
  const auto count = static_cast<int64_t>(mixtures.size());
  // From the last one on: a partner is changed after whoever reads it, and the first one reads the last as it was.
  const std::vector<float> last(images + (count - 1) * pixels, images + count * pixels);
  for (int64_t i = count - 1; i >= 0; --i) {
    const Mixture& mixture = mixtures[static_cast<size_t>(i)];
    float* const own = images + i * pixels;
    const float* const partner = i > 0 ? own - pixels : last.data();
    if (!mixture.cuts) {
      Blend(mixture.share, pixels, partner, own);
      continue;
    }
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t row = mixture.top; row < mixture.bottom; ++row) {
        const int64_t begin = (c * height_ + row) * width_;
        std::copy(partner + begin + mixture.left, partner + begin + mixture.right, own + begin + mixture.left);
      }
    }
  }
}

void Mixing::Apply(int64_t first, absl::Span<const absl::Span<std::byte>> bytes) const {
  const size_t label = channels_.size();
  LS_CHECK(bytes.size() == label + 3, "a batch has the source's fields, and those of mixing");
  auto* const shares = reinterpret_cast<float*>(bytes[label + 2].data());
  const auto samples = static_cast<int64_t>(bytes[label + 2].size() / sizeof(float));
  LS_CHECK(samples % pass_batch_ == 0, "a batch consists of whole passes");
  const size_t label_size = bytes[label].size() / static_cast<size_t>(samples);
  std::vector<Mixture> mixtures(static_cast<size_t>(pass_batch_));
  for (int64_t begin = 0; begin < samples; begin += pass_batch_) {
    for (int64_t i = 0; i < pass_batch_; ++i) {
      mixtures[static_cast<size_t>(i)] = MixtureAt(first + begin + i);
      shares[begin + i] = mixtures[static_cast<size_t>(i)].share;
      const int64_t partner = begin + (i + pass_batch_ - 1) % pass_batch_;
      std::memcpy(bytes[label + 1].data() + static_cast<size_t>(begin + i) * label_size,
                  bytes[label].data() + static_cast<size_t>(partner) * label_size, label_size);
    }
    for (size_t f = 0; f < channels_.size(); ++f) {
      auto* const images = reinterpret_cast<float*>(bytes[f].data());
      MixPass(mixtures, images + begin * channels_[f] * height_ * width_, channels_[f]);
    }
  }
}

std::unique_ptr<Mixing> MakeMixing(const job::JobSpec& job, int64_t pass_batch, absl::Span<const TensorSpec> fields) {
  if (!MixesSamples(job.data())) return nullptr;
  return std::make_unique<Mixing>(job.data().augment(), job.train().seed(), pass_batch, fields);
}

}  // namespace lockstep::worker
