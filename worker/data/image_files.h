// Images that stay in their files: each is read, decoded and scaled whenever it is wanted.
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

// The part that is taken of the image of the i-th index of a call, from the image's size. Called from several threads.
using RegionOfSample = absl::FunctionRef<ImageRegion(size_t i, ImageSize)>;

class ImageFiles {
 public:
  struct Options {
    ImageReader::Options reading;
    bool decode_all = true;  // once, to know that it can be done; else they have been decoded before
  };

  // Reads all files, at least one. REQUIRES: the form has a size. InvalidArgument, DataLoss and errors of the file
  // system name the first that is wrong.
  static absl::StatusOr<std::shared_ptr<const ImageFiles>> Open(std::vector<std::string> paths, const Options& options);

  // Of one image: [channels, height, width].
  const Shape& shape() const { return shape_; }

  // Hands each of the images `indices` to `take`, as bytes of shape(), from several threads. With `choose` a region of
  // it. DataLoss, and errors of the file system: a file is not what it was when it was opened.
  absl::Status Read(absl::Span<const int64_t> indices, const RegionOfSample* choose,
                    absl::FunctionRef<void(size_t i, const uint8_t* image)> take) const;

  // SHA-256 over the bytes of all files, over what is made of them, and over the pixels of the first ones as they are
  // decoded here: decoders that round in another way are told apart.
  const Sha256Digest& digest() const { return digest_; }

  // Of memory: names, digests, and what is decoded at a time.
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
