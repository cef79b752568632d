#include "worker/data/image_files.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

// So many images tell decoders apart: those that round in another way differ in nearly every photograph.
constexpr size_t kDecodedForDigest = 32;

absl::string_view BytesOf(const Sha256Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Sha256Digest DigestOf(const std::vector<uint8_t>& pixels) {
  return Sha256Of({reinterpret_cast<const char*>(pixels.data()), pixels.size()});
}

void Raise(std::atomic<int64_t>& most, int64_t value) {
  int64_t known = most;
  while (known < value && !most.compare_exchange_weak(known, value)) {
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const ImageFiles>> ImageFiles::Open(std::vector<std::string> paths,
                                                                   const Options& options) {
  LS_CHECK(!paths.empty(), "a folder has images");
  std::shared_ptr<ImageFiles> files(new ImageFiles(std::move(paths), options));
  LS_RETURN_IF_ERROR(files->Inspect(options.decode_all));
  return files;
}

ImageFiles::ImageFiles(std::vector<std::string> paths, const Options& options)
    : paths_(std::move(paths)), room_(options.reading.room), reader_(options.reading), digests_(paths_.size()) {
  LS_CHECK(reader_.form().size.has_value(), "images of files become one size");
  shape_ = {reader_.form().gray ? 1 : 3, reader_.form().size->height, reader_.form().size->width};
}

absl::Status ImageFiles::Inspect(bool decode_all) {
  std::vector<Sha256Digest> decoded(std::min(paths_.size(), kDecodedForDigest));
  std::atomic<int64_t> most_pixels{0};
  LS_RETURN_IF_ERROR(reader_.ForEach(paths_.size(), [&](size_t i) -> absl::Status {
    LS_ASSIGN_OR_RETURN(const std::string bytes, reader_.ReadBytes(paths_[i]));
    digests_[i] = Sha256Of(bytes);
    LS_ASSIGN_OR_RETURN(const std::unique_ptr<ImageFile> file, ImageFile::Open(bytes, paths_[i]));
    Raise(most_pixels, file->pixels());
    if (!decode_all && i >= decoded.size()) return absl::OkStatus();
    LS_ASSIGN_OR_RETURN(const Image image, reader_.Make(bytes, paths_[i]));
    if (i < decoded.size()) decoded[i] = DigestOf(image.pixels);
    return absl::OkStatus();
  }));

  Sha256 all;
  all.Update(absl::StrCat("images ", paths_.size(), " ", ShapeString(shape_), " ", reader_.form().shorter, "\n"));
  for (const Sha256Digest& digest : digests_) all.Update(BytesOf(digest));
  for (const Sha256Digest& digest : decoded) all.Update(BytesOf(digest));
  digest_ = all.Finish();

  const int64_t largest = ImageReader::BytesToDecode(most_pixels);
  held_bytes_ = std::max(largest, std::min(largest * reader_.threads(), room_));
  for (const std::string& path : paths_) {
    held_bytes_ += static_cast<int64_t>(sizeof(path) + path.capacity() + sizeof(Sha256Digest));
  }
  return absl::OkStatus();
}

absl::Status ImageFiles::Read(absl::Span<const int64_t> indices, const RegionOfSample* choose,
                              absl::FunctionRef<void(size_t i, const uint8_t* image)> take) const {
  return reader_.ForEach(indices.size(), [&](size_t i) -> absl::Status {
    LS_CHECK(indices[i] >= 0 && indices[i] < static_cast<int64_t>(paths_.size()), "the image exists");
    const auto index = static_cast<size_t>(indices[i]);
    const std::string& path = paths_[index];
    LS_ASSIGN_OR_RETURN(const std::string bytes, reader_.ReadBytes(path));
    if (Sha256Of(bytes) != digests_[index]) {
      return absl::DataLossError(
          absl::StrCat(path, ": is not the file that it was when the data were opened; restore it"));
    }
    const auto region = [&](ImageSize size) { return (*choose)(i, size); };
    LS_ASSIGN_OR_RETURN(const Image image,
                        choose == nullptr ? reader_.Make(bytes, path) : reader_.MakeRegion(bytes, path, region));
    std::vector<uint8_t> channels(image.pixels.size());
    StoreChannels(image, channels.data());
    take(i, channels.data());
    return absl::OkStatus();
  });
}

}  // namespace lockstep::worker
