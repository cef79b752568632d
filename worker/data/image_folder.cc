#include "worker/data/image_folder.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/graph/state_names.h"
#include "common/status/status_macros.h"
#include "worker/data/image_files.h"
#include "worker/data/image_listing.h"
#include "worker/data/image_reader.h"

namespace lockstep::worker {
namespace {

// Of the memory limit: what images take while they are decoded.
constexpr int64_t kRoomShare = 16;

using Paths = std::shared_ptr<const std::vector<std::string>>;

ImageForm FormOf(const job::DataFiles& files) {
  ImageForm form{.shorter = files.image_resize(), .gray = files.image_gray()};
  if (files.image_size_size() == 2) form.size = ImageSize{files.image_size(0), files.image_size(1)};
  return form;
}

// InvalidArgument unless the image has the height and width of `first`, that of `first_path`.
absl::Status CheckSameSize(const Image& image, const std::string& path, const Image& first,
                           const std::string& first_path) {
  if (image.height == first.height && image.width == first.width) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": has ", image.height, " x ", image.width, " pixels, ",
                                                 first_path, " ", first.height, " x ", first.width,
                                                 "; give image_size, such as [224, 224], to scale all to one size"));
}

// All images, one after another.
absl::StatusOr<StoredArray> DecodeAll(const std::string& folder, const Paths& paths, const ImageReader& reader,
                                      int64_t memory_limit) {
  const auto make = [&](const std::string& path) -> absl::StatusOr<Image> {
    LS_ASSIGN_OR_RETURN(const std::string bytes, reader.ReadBytes(path));
    return reader.Make(bytes, path);
  };
  const std::string& first_path = paths->front();
  LS_ASSIGN_OR_RETURN(const Image first, make(first_path));
  const auto count = static_cast<int64_t>(paths->size());
  const auto each = static_cast<int64_t>(first.pixels.size());
  if (count > memory_limit / each) {
    return absl::ResourceExhaustedError(
        absl::StrCat(folder, ": ", count, " images of ", each, " bytes are more than the ", memory_limit,
                     " bytes of data.memory; leave them in their files with image_decode: step, raise it, or make "
                     "image_size smaller"));
  }
  LS_ASSIGN_OR_RETURN(Tensor made, Tensor::Create(DType::kU8, {count, first.channels, first.height, first.width}));
  const auto pixels = std::make_shared<Tensor>(std::move(made));
  auto* const to = reinterpret_cast<uint8_t*>(pixels->data());
  LS_RETURN_IF_ERROR(reader.ForEach(paths->size(), [&](size_t i) -> absl::Status {
    LS_ASSIGN_OR_RETURN(const Image image, make((*paths)[i]));
    LS_RETURN_IF_ERROR(CheckSameSize(image, (*paths)[i], first, first_path));
    StoreChannels(image, to + static_cast<int64_t>(i) * each);
    return absl::OkStatus();
  }));
  StoredArray array{.dtype = DType::kU8, .shape = pixels->shape()};
  array.elements = std::shared_ptr<std::byte>(pixels, pixels->data());
  return array;
}

absl::StatusOr<StoredArray> LeaveInFiles(const Paths& paths, const ImageFiles::Options& options) {
  StoredArray array{.dtype = DType::kU8};
  LS_ASSIGN_OR_RETURN(array.images, ImageFiles::Open(*paths, options));
  array.shape = array.images->shape();
  array.shape.insert(array.shape.begin(), static_cast<int64_t>(paths->size()));
  return array;
}

// The place of an element of which each file has `each`.
std::function<std::string(int64_t)> PlaceIn(Paths paths, int64_t each) {
  return [paths = std::move(paths), each](int64_t i) { return (*paths)[static_cast<size_t>(i / each)] + ": "; };
}

StoredArray LabelsOf(const std::vector<int64_t>& labels) {
  const auto tensor = std::make_shared<Tensor>(Tensor::Zeros(DType::kI64, {static_cast<int64_t>(labels.size())}));
  std::copy(labels.begin(), labels.end(), tensor->elements<int64_t>().begin());
  StoredArray array{.name = kLabelsField, .dtype = DType::kI64, .shape = tensor->shape()};
  array.elements = std::shared_ptr<std::byte>(tensor, tensor->data());
  return array;
}

// InvalidArgument unless the job's classes, where it has some, are those of the folder.
absl::Status CheckClasses(const job::DataFiles& files, const std::vector<std::string>& found) {
  const std::vector<std::string> wanted(files.classes().begin(), files.classes().end());
  if (wanted.empty() || wanted == found) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(files.inputs(), ": has the classes ", ListNames(found),
                                                 ", the job's are ", ListNames(wanted),
                                                 "; classes are numbered in the order of their names, so the folders "
                                                 "must be the same"));
}

}  // namespace

absl::StatusOr<StoredData> ReadImageFolder(const job::DataFiles& files, const ReadOptions& options) {
  const bool labelled = options.labels != Labels::kNone;
  LS_ASSIGN_OR_RETURN(ImageListing found, labelled ? ListImageClasses(files.inputs()) : ListImages(files.inputs()));
  if (labelled) LS_RETURN_IF_ERROR(CheckClasses(files, found.classes));
  const Paths paths = std::make_shared<const std::vector<std::string>>(std::move(found.paths));
  const ImageReader::Options reading{.form = FormOf(files),
                                     .threads = options.image_threads,
                                     .room = options.memory_limit_bytes / kRoomShare,
                                     .pulse = options.pulse};
  StoredArray inputs;
  if (files.image_decode() == job::DataFiles::IMAGE_DECODE_STEP) {
    LS_ASSIGN_OR_RETURN(inputs, LeaveInFiles(paths, {.reading = reading, .decode_all = !files.has_sha256()}));
  } else {
    LS_ASSIGN_OR_RETURN(inputs, DecodeAll(files.inputs(), paths, ImageReader(reading), options.memory_limit_bytes));
  }
  const Shape sample(inputs.shape.begin() + 1, inputs.shape.end());
  inputs.name = kInputsField;
  inputs.path = files.inputs();
  inputs.element = PlaceIn(paths, NumElements(sample));

  StoredData data;
  data.num_samples = inputs.shape[0];
  data.features.push_back({.name = kInputsField, .sample = sample});
  data.arrays.push_back(std::move(inputs));
  if (!labelled) return data;
  StoredArray labels = LabelsOf(found.labels);
  labels.path = files.inputs();
  labels.element = PlaceIn(paths, 1);
  data.label = {.name = kLabelsField, .array = 1};
  data.arrays.push_back(std::move(labels));
  data.classes = std::move(found.classes);
  return data;
}

}  // namespace lockstep::worker
