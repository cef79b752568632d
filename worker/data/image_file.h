// JPEG and PNG files as pixels of 8 bits.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_FILE_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::worker {

// Row by row, the channels of a pixel beside each other: red, green and blue, or brightness alone.
struct Image {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;
  std::vector<uint8_t> pixels;
};

// The image of a file's `bytes`, with colours or without: transparency is left out, greys become colours, and colours
// become the brightness (299 R + 587 G + 114 B) / 1000. Turned as the file stores it. `path` is for messages.
// InvalidArgument: neither JPEG nor PNG, more than 8 bits per channel, CMYK, or more than `most_pixels`. DataLoss:
// truncated or corrupt.
absl::StatusOr<Image> DecodeImage(absl::string_view bytes, const std::string& path, bool gray, int64_t most_pixels);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_FILE_H_
