// Decodes JPEG and PNG files to 8-bit pixels.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_FILE_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::worker {

// Pixels in row-major order with interleaved channels: red, green, blue, or brightness alone.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<uint8_t> pixels;
};

inline constexpr int64_t kMostPixels = int64_t{1} << 27;

// A file whose header has been parsed.
class ImageFile {
 public:
  virtual ~ImageFile() = default;

  // `bytes` outlive it; `path` is for messages. InvalidArgument: neither JPEG nor PNG, more than 8 bits per channel,
  // CMYK, or more than kMostPixels. DataLoss: truncated or corrupt.
  static absl::StatusOr<std::unique_ptr<ImageFile>> Open(absl::string_view bytes, const std::string& path);

  // Decodes to three channels, or with `gray` to one: (299 R + 587 G + 114 B) / 1000. Transparency is dropped; the
  // orientation of EXIF is ignored. DataLoss: truncated or corrupt.
  absl::StatusOr<Image> Decode(bool gray);

  int64_t pixels() const { return height_ * width_; }

 protected:
  ImageFile(absl::string_view bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  absl::Status SetSize(int64_t height, int64_t width);
  absl::Status Corrupt(absl::string_view why) const;
  Image MakeColours() const;

  // Red, green and blue.
  virtual absl::StatusOr<Image> DecodeColours() = 0;

  const absl::string_view bytes_;
  const std::string path_;
  int64_t height_ = 0;
  int64_t width_ = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_FILE_H_
