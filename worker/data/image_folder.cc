#include "worker/data/image_folder.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/liveness/activity.h"
#include "common/status/status_macros.h"
#include "common/sync/mutex.h"
#include "worker/data/byte_source.h"
#include "worker/data/image_file.h"
#include "worker/data/image_scale.h"

namespace lockstep::worker {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMostPixels = int64_t{1} << 27;
constexpr int64_t kMostFileBytes = int64_t{1} << 30;
constexpr size_t kMostThreads = 16;
constexpr int kMostFolders = 100000;

struct Found {
  fs::path path;
  int64_t label = 0;
};

struct FoundClasses {
  std::vector<Found> images;
  std::vector<std::string> names;
};

enum class Kind : uint8_t { kRead, kOtherImage, kNoImage };

Kind KindOf(const fs::path& path) {
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") return Kind::kRead;
  for (const char* const other : {".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"}) {
    if (extension == other) return Kind::kOtherImage;
  }
  return Kind::kNoImage;
}

absl::Status CannotRead(const fs::path& path, const std::error_code& error) {
  return absl::ErrnoToStatus(error.value(), absl::StrCat(path.string(), ": cannot be read"));
}

// What lies in a folder, sorted by name.
struct FolderListing {
  std::vector<fs::path> images;
  std::vector<fs::path> folders;
};

// InvalidArgument for an image of a kind that is not read.
absl::StatusOr<FolderListing> List(const fs::path& folder) {
  FolderListing listing;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (absl::StartsWith(at->path().filename().string(), ".")) continue;
    const bool is_folder = at->is_directory(error);
    if (error) return CannotRead(at->path(), error);
    const Kind kind = is_folder ? Kind::kNoImage : KindOf(at->path());
    if (is_folder) listing.folders.push_back(at->path());
    if (kind == Kind::kRead) listing.images.push_back(at->path());
    if (kind == Kind::kOtherImage) {
      return absl::InvalidArgumentError(
          absl::StrCat(at->path().string(), ": only JPEG and PNG images are read; convert it, or take it out"));
    }
  }
  if (error) return CannotRead(folder, error);
  std::sort(listing.images.begin(), listing.images.end());
  std::sort(listing.folders.begin(), listing.folders.end());
  return listing;
}

// The images below a folder, in order. Links are followed.
class Walk {
 public:
  explicit Walk(std::vector<Found>& found) : found_(found) {}

  // Adds the images of a folder, then those of its folders.
  absl::Status Add(const fs::path& folder, int64_t label) {
    std::error_code error;
    const fs::path place = fs::canonical(folder, error);
    if (error) return CannotRead(folder, error);
    if (std::find(above_.begin(), above_.end(), place) != above_.end()) {
      return absl::InvalidArgumentError(absl::StrCat(folder.string(), ": links back to a folder that it lies in"));
    }
    if (++folders_ > kMostFolders) {
      return absl::InvalidArgumentError(absl::StrCat(folder.string(), ": is beyond the ", kMostFolders,
                                                     " folders that are read; links may multiply them"));
    }
    LS_ASSIGN_OR_RETURN(const FolderListing listing, List(folder));
    for (const fs::path& path : listing.images) found_.push_back({path, label});
    above_.push_back(place);
    for (const fs::path& below : listing.folders) LS_RETURN_IF_ERROR(Add(below, label));
    above_.pop_back();
    return absl::OkStatus();
  }

 private:
  std::vector<Found>& found_;
  std::vector<fs::path> above_;  // the folders that lead to the one that is read
  int folders_ = 0;
};

// Images with the number of their class.
absl::StatusOr<FoundClasses> FindClasses(const fs::path& root) {
  LS_ASSIGN_OR_RETURN(const FolderListing listing, List(root));
  if (!listing.images.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        listing.images[0].string(), ": lies in no class; put it into a folder that is named after its class"));
  }
  FoundClasses found;
  Walk walk(found.images);
  for (const fs::path& folder : listing.folders) {
    const size_t before = found.images.size();
    LS_RETURN_IF_ERROR(walk.Add(folder, static_cast<int64_t>(found.names.size())));
    if (found.images.size() == before) {
      return absl::NotFoundError(absl::StrCat(folder.string(), ": the class has no image; remove the folder"));
    }
    found.names.push_back(folder.filename().string());
  }
  return found;
}

absl::StatusOr<std::string> ReadBytes(const std::string& path, Pulse* pulse) {
  std::error_code error;
  const uintmax_t size = fs::file_size(path, error);
  if (!error && size > kMostFileBytes) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has ", size, " bytes, too many for an image"));
  }
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, pulse));
  std::string bytes(error ? 0 : size, '\0');
  LS_ASSIGN_OR_RETURN(const size_t got,
                      source.ReadSome(absl::MakeSpan(reinterpret_cast<std::byte*>(bytes.data()), bytes.size())));
  bytes.resize(got);
  return bytes;
}

// What images become.
struct ImageForm {
  std::optional<ImageSize> size;  // none: all have that of the first
  int64_t shorter = 0;
  bool gray = false;
};

absl::StatusOr<Image> ReadImage(const std::string& path, const ImageForm& form, Pulse* pulse) {
  LS_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(path, pulse));
  LS_ASSIGN_OR_RETURN(Image image, DecodeImage(bytes, path, form.gray, kMostPixels));
  if (!form.size.has_value()) return image;
  const ImageSize scaled = ScaledSize({image.height, image.width}, *form.size, form.shorter);
  if (scaled.height * scaled.width > kMostPixels) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": an image of ", image.height, " x ", image.width, " pixels is too narrow to be scaled"));
  }
  return CropCentre(ScaleImage(image, scaled.height, scaled.width), *form.size);
}

// The pixels of a sample: the channels one after another.
void StoreImage(const Image& image, uint8_t* to) {
  const int64_t pixels = image.height * image.width;
  for (int64_t c = 0; c < image.channels; ++c) {
    const uint8_t* from = image.pixels.data() + c;
    for (int64_t i = 0; i < pixels; ++i, from += image.channels) *to++ = *from;
  }
}

// Reads all images. The error of the first that has one.
class Reading {
 public:
  // Into `elements`, one image after another, each of the size of `first`, the first of them.
  Reading(const std::vector<Found>& images, ImageForm form, const Image& first, uint8_t* elements, Pulse* pulse)
      : images_(images), form_(form), size_{first.height, first.width}, elements_(elements), pulse_(pulse) {
    each_ = static_cast<int64_t>(first.pixels.size());
  }

  absl::Status Run() {
    std::vector<std::thread> threads;
    const size_t cores = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
    for (size_t i = 1; i < std::min(cores, images_.size()); ++i) threads.emplace_back([this] { Work(); });
    Work();
    for (std::thread& thread : threads) thread.join();
    MutexLock lock(&mutex_);
    return error_;
  }

 private:
  // Behind an image that is wrong nothing is read; all before it are.
  void Work() {
    const NowDoing reading("reading ", images_.size(), " images");
    for (size_t i = next_++; i < images_.size() && i < bad_; i = next_++) {
      const absl::Status stored = ReadOne(images_[i].path.native(), elements_ + static_cast<int64_t>(i) * each_);
      if (stored.ok()) continue;
      MutexLock lock(&mutex_);
      if (i >= bad_) continue;
      bad_ = i;
      error_ = stored;
    }
  }

  absl::Status ReadOne(const std::string& path, uint8_t* to) const {
    LS_ASSIGN_OR_RETURN(const Image image, ReadImage(path, form_, pulse_));
    if (image.height == size_.height && image.width == size_.width) {
      StoreImage(image, to);
      return absl::OkStatus();
    }
    return absl::InvalidArgumentError(absl::StrCat(path, ": has ", image.height, " x ", image.width, " pixels, ",
                                                   images_[0].path.string(), " ", size_.height, " x ", size_.width,
                                                   "; give image_size, such as [224, 224], to scale all to one size"));
  }

  const std::vector<Found>& images_;
  const ImageForm form_;
  const ImageSize size_;
  uint8_t* const elements_;
  Pulse* const pulse_;
  int64_t each_ = 0;  // bytes
  std::atomic<size_t> next_{0};
  std::atomic<size_t> bad_{SIZE_MAX};
  Mutex mutex_;
  absl::Status error_ GUARDED_BY(mutex_);
};

absl::StatusOr<StoredData> Read(const job::DataFiles& files, const std::vector<Found>& found, ImageForm form,
                                const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(const Image first, ReadImage(found[0].path.native(), form, /*pulse=*/nullptr));
  const auto count = static_cast<int64_t>(found.size());
  const auto each = static_cast<int64_t>(first.pixels.size());
  if (count > options.memory_limit_bytes / each) {
    return absl::ResourceExhaustedError(absl::StrCat(files.inputs(), ": ", count, " images of ", each,
                                                     " bytes are more than the ", options.memory_limit_bytes,
                                                     " bytes of data.memory; raise it, or make image_size smaller"));
  }
  LS_ASSIGN_OR_RETURN(Tensor made, Tensor::Create(DType::kU8, {count, first.channels, first.height, first.width}));
  auto pixels = std::make_shared<Tensor>(std::move(made));
  Reading reading(found, form, first, reinterpret_cast<uint8_t*>(pixels->data()), options.pulse);
  LS_RETURN_IF_ERROR(reading.Run());

  StoredData data;
  data.num_samples = count;
  const auto paths = std::make_shared<std::vector<Found>>(found);
  StoredArray inputs{.name = kInputsField, .dtype = DType::kU8, .shape = pixels->shape()};
  inputs.elements = std::shared_ptr<std::byte>(pixels, pixels->data());
  inputs.element = [paths, each](int64_t i) { return (*paths)[static_cast<size_t>(i / each)].path.string() + ": "; };
  inputs.path = files.inputs();
  data.features.push_back({.name = kInputsField, .sample = {first.channels, first.height, first.width}});
  data.arrays.push_back(std::move(inputs));
  if (options.labels == Labels::kNone) return data;

  auto labels = std::make_shared<Tensor>(Tensor::Zeros(DType::kI64, {count}));
  for (size_t i = 0; i < found.size(); ++i) labels->elements<int64_t>()[i] = found[i].label;
  StoredArray classes{.name = kLabelsField, .dtype = DType::kI64, .shape = {count}};
  classes.elements = std::shared_ptr<std::byte>(labels, labels->data());
  classes.element = [paths](int64_t i) { return (*paths)[static_cast<size_t>(i)].path.string() + ": "; };
  classes.path = files.inputs();
  data.label = {.name = kLabelsField, .array = 1};
  data.arrays.push_back(std::move(classes));
  return data;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ImageClasses(const std::string& folder) {
  LS_ASSIGN_OR_RETURN(const FolderListing listing, List(folder));
  std::vector<std::string> names;
  for (const fs::path& path : listing.folders) names.push_back(path.filename().string());
  return names;
}

absl::StatusOr<StoredData> ReadImageFolder(const job::DataFiles& files, const ReadOptions& options) {
  const fs::path root(files.inputs());
  FoundClasses found;
  if (options.labels == Labels::kNone) {
    LS_RETURN_IF_ERROR(Walk(found.images).Add(root, /*label=*/0));
  } else {
    LS_ASSIGN_OR_RETURN(found, FindClasses(root));
  }
  if (found.images.empty()) {
    return absl::NotFoundError(absl::StrCat(root.string(), ": has no JPEG or PNG image in the folder of a class"));
  }
  ImageForm form{.gray = files.image_gray()};
  if (files.image_size_size() == 2) form.size = ImageSize{files.image_size(0), files.image_size(1)};
  form.shorter = files.image_resize();
  LS_ASSIGN_OR_RETURN(StoredData data, Read(files, found.images, form, options));
  data.classes = std::move(found.names);
  return data;
}

}  // namespace lockstep::worker
