#include "worker/data/image_reader.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kMostFileBytes = int64_t{1} << 30;
constexpr int kMostThreads = 16;

}  // namespace

void StoreChannels(const Image& image, uint8_t* to) {
  const int64_t pixels = image.height * image.width;
  for (int64_t c = 0; c < image.channels; ++c) {
    const uint8_t* from = image.pixels.data() + c;
    for (int64_t i = 0; i < pixels; ++i, from += image.channels) *to++ = *from;
  }
}

ImageReader::ImageReader(const Options& options)
    : form_(options.form),
      threads_(options.threads > 0
                   ? options.threads
                   : std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads)),
      room_(options.room),
      pulse_(options.pulse) {}

absl::Status ImageReader::ForEach(size_t count, absl::FunctionRef<absl::Status(size_t)> work) const {
  std::atomic<size_t> next{0};
  std::atomic<size_t> bad{count};
  Mutex mutex;
  absl::Status error;
  const auto run = [&] {
    const NowDoing reading("reading ", count, " images");
    for (size_t i = next++; i < bad; i = next++) {
      absl::Status done = work(i);
      if (done.ok()) continue;
      MutexLock lock(&mutex);
      if (i >= bad) continue;
      bad = i;
      error = std::move(done);
    }
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < std::min(static_cast<size_t>(threads_), count); ++i) threads.emplace_back(run);
  run();
  for (std::thread& thread : threads) thread.join();
  return error;
}

absl::StatusOr<std::string> ImageReader::ReadBytes(const std::string& path) const {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > kMostFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has ", size, " bytes, too many for an image"));
  }
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, pulse_));
  std::string bytes(error ? 0 : size, '\0');
  LS_ASSIGN_OR_RETURN(const size_t got,
                      source.ReadSome(absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size())));
  bytes.resize(got);
  return bytes;
}

// Waits until there is room for an image, or no other is decoded.
class ImageReader::Share {
 public:
  Share(const ImageReader& reader, int64_t bytes) : reader_(reader), bytes_(bytes) {
    MutexLock lock(&reader_.mutex_);
    while (reader_.taken_ > 0 && reader_.taken_ + bytes_ > reader_.room_) reader_.returned_.Wait(&reader_.mutex_);
    reader_.taken_ += bytes_;
  }
  ~Share() {
    MutexLock lock(&reader_.mutex_);
    reader_.taken_ -= bytes_;
    reader_.returned_.SignalAll();
  }
  Share(const Share&) = delete;
  Share& operator=(const Share&) = delete;

 private:
  const ImageReader& reader_;
  const int64_t bytes_;
};

// Two copies of the pixels, in four channels and in three, and as much as a progressive JPEG needs for its
// coefficients.
int64_t ImageReader::BytesToDecode(int64_t pixels) { return pixels * 10; }

absl::StatusOr<Image> ImageReader::Decode(absl::string_view bytes, const std::string& path,
                                          absl::FunctionRef<absl::StatusOr<Image>(Image)> fit) const {
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> file, ImageFile::Open(bytes, path));
  const Share share(*this, BytesToDecode(file->pixels()));
  LS_ASSIGN_OR_RETURN(Image image, file->Decode(form_.gray));
  return fit(std::move(image));
}

absl::StatusOr<Image> ImageReader::Make(absl::string_view bytes, const std::string& path) const {
  return Decode(bytes, path, [&](Image image) -> absl::StatusOr<Image> {
    if (!form_.size.has_value()) return image;
    const ImageSize scaled = ScaledSize({image.height, image.width}, *form_.size, form_.shorter);
    if (scaled.height * scaled.width > kMostPixels) {
      return absl::InvalidArgumentError(absl::StrCat(
          path, ": has ", image.height, " x ", image.width, " pixels (height x width); scaled until it covers ",
          "image_size it would have ", scaled.height, " x ", scaled.width, ", too many"));
    }
    return CropCentre(ScaleImage(image, scaled.height, scaled.width), *form_.size);
  });
}

absl::StatusOr<Image> ImageReader::MakeRegion(absl::string_view bytes, const std::string& path,
                                              RegionOfImage choose) const {
  LS_CHECK(form_.size.has_value(), "what is cut out is scaled to a size");
  return Decode(bytes, path, [&](Image image) -> absl::StatusOr<Image> {
    const Image part = Crop(image, choose({image.height, image.width}));
    return ScaleImage(part, form_.size->height, form_.size->width);
  });
}

}  // namespace lockstep::worker
