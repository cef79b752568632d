// From image files to the pixels of samples: read, decoded, cut and scaled, by several threads.
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

// What images become.
struct ImageForm {
  std::optional<ImageSize> size;  // none: they stay as they are
  int64_t shorter = 0;            // as of ScaledSize
  bool gray = false;
};

// The part of an image of that size that is scaled to ImageForm::size.
using RegionOfImage = absl::FunctionRef<ImageRegion(ImageSize)>;

// Copies an image to `to`, the channels one after another.
void StoreChannels(const Image& image, uint8_t* to);

class ImageReader {
 public:
  struct Options {
    ImageForm form;
    int threads = 0;   // 0: one per core, 16 at most
    int64_t room = 0;  // bytes that images take while they are decoded, all together; one alone may take more
    Pulse* pulse = nullptr;
  };
  explicit ImageReader(const Options& options);

  const ImageForm& form() const { return form_; }
  int threads() const { return threads_; }

  // Calls work(i) for every i below `count`, on several threads. The error of the least i that has one; what lies
  // behind it may not have been called.
  absl::Status ForEach(size_t count, absl::FunctionRef<absl::Status(size_t)> work) const;

  // The bytes of a file of at most 1 GiB. Errors of the file system.
  absl::StatusOr<std::string> ReadBytes(const std::string& path) const;

  // The image of a file's bytes in this form: its centre, scaled. Errors as ImageFile.
  absl::StatusOr<Image> Make(absl::string_view bytes, const std::string& path) const;
  // The same of the region that `choose` takes. REQUIRES: form().size.
  absl::StatusOr<Image> MakeRegion(absl::string_view bytes, const std::string& path, RegionOfImage choose) const;

  // What an image of so many pixels takes while it is decoded, at most.
  static int64_t BytesToDecode(int64_t pixels);

 private:
  // A part of the room, for as long as it lives.
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
