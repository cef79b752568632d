// Mixed training images. Each sample of a pass has a partner: the sample before it, and the first one the last. Its
// image becomes a mixture of both, and the loss takes both labels by the shares that the images have in it.
//
//   mixup    share * own + (1 - share) * partner's, per pixel, the share distributed as Beta(alpha, alpha): Zhang et
//   al.,
//            "mixup: Beyond Empirical Risk Minimization", 2018, torchvision's MixUp
//   cutmix   the own image, with a rectangle of the partner's in its place: Yun et al., "CutMix: Regularization
//   Strategy
//            to Train Strong Classifiers with Localizable Features", 2019, torchvision's CutMix
//
// What is drawn for a sample is a function of the seed and of its position in the stream of samples (SampleStream), and
// which samples are a pass is fixed by the job: so a mixture is the same for any number of workers, and after any
// restart.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_MIXING_H_
#define LOCKSTEP_WORKER_DATA_MIXING_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"

namespace lockstep::worker {

// How one sample is mixed.
struct Mixture {
  float share = 1;  // of the sample itself: a multiple of 2^-24, so that 1 - share is exact
  // The partner's pixels: rows [top, bottom) and columns [left, right), or, where `cuts` is false, all by the share.
  bool cuts = false;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

class Mixing {
 public:
  // `fields` are those of a source of images and labels of classes: the features are float32 [channels, height, width]
  // of one height and width, the last field is the label. REQUIRES: MixesSamples(rule), pass_batch >= 2.
  Mixing(const job::Augment& rule, uint64_t seed, int64_t pass_batch, absl::Span<const TensorSpec> fields);

  // What a batch has behind the fields of its source: kPartnerLabelInput and kShareInput (training_graph.h), under
  // these names.
  absl::Span<const TensorSpec> fields() const { return fields_; }

  // Of the sample at `position`.
  Mixture MixtureAt(int64_t position) const;

  // Mixes the samples that were read for positions `first`, `first` + 1, …, and fills fields(). `bytes` is a batch, per
  // field. REQUIRES: it consists of whole passes.
  void Apply(int64_t first, absl::Span<const absl::Span<std::byte>> bytes) const;

 private:
  void MixPass(absl::Span<const Mixture> mixtures, float* images, int64_t channels) const;

  const double mixup_;   // 0: none
  const double cutmix_;  // likewise
  const uint64_t seed_;
  const int64_t pass_batch_;
  std::vector<int64_t> channels_;  // per feature
  int64_t height_ = 0;
  int64_t width_ = 0;
  std::vector<TensorSpec> fields_;
};

// As `job` mixes the samples of these fields; null where it does not. REQUIRES: as the constructor.
std::unique_ptr<Mixing> MakeMixing(const job::JobSpec& job, int64_t pass_batch, absl::Span<const TensorSpec> fields);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_MIXING_H_
