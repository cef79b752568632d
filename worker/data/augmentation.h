// Random changes of training images: cut out, mirrored, and moved by some pixels. What becomes of a sample is a
// function of the seed and of its position in the stream of samples (SampleStream), so of seed, epoch and sample: the
// same for any number of workers, and after any restart.
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
  // For samples of these fields, normalised so: float32 fields of three dimensions are images, the others stay.
  Augmentation(const job::Augment& rule, const Normalisation& normalisation, uint64_t seed,
               absl::Span<const TensorSpec> fields);

  // Whether a region of each image is taken, before Apply: what DataSource::ReadRegions is for.
  bool crops() const { return least_share_ > 0; }
  // The region of the image of that size that the sample at `position` gets: a random share of its area and a random
  // ratio of its sides, as torchvision's RandomResizedCrop. REQUIRES: crops().
  ImageRegion RegionAt(int64_t position, ImageSize size) const;

  // Changes the samples of field `field` that were read for positions `first`, `first` + 1, … All fields of a position
  // are changed alike.
  void Apply(int field, int64_t first, absl::Span<std::byte> samples) const;

 private:
  // What becomes of an image.
  struct Change {
    bool flip = false;
    int64_t down = 0;
    int64_t right = 0;
  };
  Change ChangeAt(int64_t position) const;
  // `from` and `to` are images of that shape, apart from each other.
  void Draw(const Change& change, const Shape& shape, const float* from, float* to) const;

  const bool flip_;
  const int64_t padding_;
  double least_share_ = 0;
  double most_share_ = 0;
  const uint64_t seed_;
  const std::vector<float> empty_;  // per channel, or for all: what 0 becomes
  std::vector<Shape> images_;       // per field; empty: none
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_AUGMENTATION_H_
