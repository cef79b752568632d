// Images that stay in their files: each is read, decoded and scaled whenever it is needed.
//
// Threading: thread-safe once opened; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_FILES_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/digest/sha256.h"
#include "common/tensor/shape.h"
#include "worker/data/image_reader.h"

namespace lockstep::worker {

// Chooses the region of the image of the i-th index of a call, given the image's size. Called from several threads.
using RegionOfSample = absl::FunctionRef<ImageRegion(size_t i, ImageSize)>;

class ImageFiles {
 public:
  struct Options {
    ImageReader::Options reading;
    bool decode_all = true;  // decodes every image in Open, to find defects; false: they are known to be sound
  };

  // Reads all files. REQUIRES: at least one path; options.reading.form has a size. InvalidArgument, DataLoss and errors
  // of the file system name the first bad file.
  static absl::StatusOr<std::shared_ptr<const ImageFiles>> Open(std::vector<std::string> paths, const Options& options);

  // The shape of one image: [channels, height, width].
  const Shape& shape() const { return shape_; }

  // Calls `take` with each of the images `indices` as uint8 of shape(), from several threads; with `choose` (may be
  // null) a region of each, scaled. DataLoss and errors of the file system when a file has changed since Open.
  absl::Status Read(absl::Span<const int64_t> indices, const RegionOfSample* choose,
                    absl::FunctionRef<void(size_t i, const uint8_t* image)> take) const;

  // SHA-256 over the bytes of all files, the options of scaling, and the decoded pixels of the first images, so that
  // decoders with different rounding give different digests.
  const Sha256Digest& digest() const { return digest_; }

  // The memory in bytes: names, digests, and images while they are decoded.
  int64_t held_bytes() const { return held_bytes_; }

 private:
  ImageFiles(std::vector<std::string> paths, const Options& options);

  absl::Status Inspect(bool decode_all);

  const std::vector<std::string> paths_;
  const int64_t room_;
  const ImageReader reader_;
  std::vector<Sha256Digest> digests_;  // per file
  Shape shape_;
  Sha256Digest digest_ = {};
  int64_t held_bytes_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_FILES_H_
