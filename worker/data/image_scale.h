// Scales images to the same bits as Pillow and torchvision, with integer arithmetic only, so that every machine gets
// the same result.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_SCALE_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_SCALE_H_

#include <cstdint>

#include "worker/data/image_file.h"

namespace lockstep::worker {

// Pillow's resize((width, height), BILINEAR) up to version 12 (13 may filter the columns first): an antialiasing
// triangle filter, first along the rows, then along the columns, rounded to 8 bits after each. REQUIRES: sizes > 0.
Image ScaleImage(const Image& image, int64_t height, int64_t width);

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// The size with the aspect ratio of `from` whose shorter side is `shorter`, as torchvision's Resize; with `shorter` = 0
// the smallest that covers `size`. The longer side is rounded down.
ImageSize ScaledSize(ImageSize from, ImageSize size, int64_t shorter);

struct ImageRegion {
  int64_t top = 0;
  int64_t left = 0;
  ImageSize size;
};

// REQUIRES: the region lies in the image.
Image Crop(const Image& image, const ImageRegion& region);

// torchvision's CenterCrop. REQUIRES: the image covers `size`.
Image CropCentre(const Image& image, ImageSize size);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_SCALE_H_
