// Random augmentation of training images: crops, mirroring, and shifts by some pixels. The augmentation of a sample is
// a function of the seed and of the sample's position in the SampleStream alone: the same for any number of workers and
// after any restart.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_DATA_AUGMENTATION_H_
#define LOCKSTEP_WORKER_DATA_AUGMENTATION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"
#include "worker/data/image_scale.h"

namespace lockstep::worker {

class Augmentation {
 public:
  // `fields`: of the samples, with `normalisation`. Float32 fields of three dimensions are images; others are
  // unchanged.
  Augmentation(const job::Augment& rule, const Normalisation& normalisation, uint64_t seed,
               absl::Span<const TensorSpec> fields);

  // Whether samples are random crops: read them with DataSource::ReadRegions and RegionAt, before Apply.
  bool crops() const { return least_share_ > 0; }
  // The crop, from an image of `size`, for the sample at `position`: a random share of the area and a random aspect
  // ratio, as torchvision's RandomResizedCrop. REQUIRES: crops().
  ImageRegion RegionAt(int64_t position, ImageSize size) const;

  // Mirrors and shifts, in place, the samples of field `field` at positions `first`, `first` + 1, … All fields of a
  // position are changed alike.
  void Apply(int field, int64_t first, absl::Span<std::byte> samples) const;

 private:
  struct Change {
    bool flip = false;
    int64_t down = 0;
    int64_t right = 0;
  };
  Change ChangeAt(int64_t position) const;
  // `from` and `to` are images of `shape` that do not overlap.
  void Draw(const Change& change, const Shape& shape, const float* from, float* to) const;

  const bool flip_;
  const int64_t padding_;
  double least_share_ = 0;
  double most_share_ = 0;
  const uint64_t seed_;
  const std::vector<float> empty_;  // the normalised value of a stored 0, per channel or one for all
  std::vector<Shape> images_;       // per field its shape; empty: not an image
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_AUGMENTATION_H_
