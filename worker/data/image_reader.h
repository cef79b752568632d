// Turns image files into the pixels of samples on several threads: reads, decodes, crops and scales them.
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_READER_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/sync/mutex.h"
#include "common/sync/pulse.h"
#include "worker/data/image_file.h"
#include "worker/data/image_scale.h"

namespace lockstep::worker {

// The form of the resulting images.
struct ImageForm {
  std::optional<ImageSize> size;  // none: not scaled
  int64_t shorter = 0;            // as in ScaledSize
  bool gray = false;
};

// Chooses the region, given an image's size, that is scaled to ImageForm::size.
using RegionOfImage = absl::FunctionRef<ImageRegion(ImageSize)>;

// Copies an image to `to` as [channels, height, width].
void StoreChannels(const Image& image, uint8_t* to);

class ImageReader {
 public:
  struct Options {
    ImageForm form;
    int threads = 0;   // 0: one per core, 16 at most
    int64_t room = 0;  // limit in bytes of all images being decoded; a single image may exceed it
    Pulse* pulse = nullptr;
  };
  explicit ImageReader(const Options& options);

  const ImageForm& form() const { return form_; }
  int threads() const { return threads_; }

  // Calls work(i) for every i below `count`, on several threads. Returns the error of the smallest i that failed; calls
  // for larger i may be missing then. Blocks.
  absl::Status ForEach(size_t count, absl::FunctionRef<absl::Status(size_t)> work) const;

  // The bytes of a file of at most 1 GiB. Errors of the file system.
  absl::StatusOr<std::string> ReadBytes(const std::string& path) const;

  // Decodes the bytes of a file and brings them into form(): the centre crop, scaled. Errors of ImageFile.
  absl::StatusOr<Image> Make(absl::string_view bytes, const std::string& path) const;
  // The same with the region that `choose` returns, scaled. REQUIRES: form().size is set.
  absl::StatusOr<Image> MakeRegion(absl::string_view bytes, const std::string& path, RegionOfImage choose) const;

  // The most memory in bytes that decoding an image of `pixels` pixels takes.
  static int64_t BytesToDecode(int64_t pixels);

 private:
  // Holds a part of the room for its lifetime.
  class Share;

  absl::StatusOr<Image> Decode(absl::string_view bytes, const std::string& path,
                               absl::FunctionRef<absl::StatusOr<Image>(Image)> fit) const;

  const ImageForm form_;
  const int threads_;
  const int64_t room_;
  Pulse* const pulse_;
  mutable Mutex mutex_;
  mutable CondVar returned_;
  mutable int64_t taken_ GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_READER_H_
