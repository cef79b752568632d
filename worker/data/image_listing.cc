#include "worker/data/image_listing.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFolders = 100000;

enum class FileKind : uint8_t { kRead, kOtherImage, kNoImage };

FileKind FileKindOf(const fs::path& path) {
  const std::string extension = absl::AsciiStrToLower(path.extension().string());
  if (extension == ".jpg" || extension == ".jpeg" || extension == ".png") return FileKind::kRead;
  for (const char* const other : {".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp", ".gif"}) {
    if (extension == other) return FileKind::kOtherImage;
  }
  return FileKind::kNoImage;
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
    const FileKind kind = is_folder ? FileKind::kNoImage : FileKindOf(at->path());
    if (is_folder) listing.folders.push_back(at->path());
    if (kind == FileKind::kRead) listing.images.push_back(at->path());
    if (kind == FileKind::kOtherImage) {
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
  explicit Walk(ImageListing& found) : found_(found) {}

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
    for (const fs::path& path : listing.images) {
      found_.paths.push_back(path.string());
      found_.labels.push_back(label);
    }
    above_.push_back(place);
    for (const fs::path& below : listing.folders) LS_RETURN_IF_ERROR(Add(below, label));
    above_.pop_back();
    return absl::OkStatus();
  }

 private:
  ImageListing& found_;
  std::vector<fs::path> above_;  // the folders that lead to the one that is read
  int folders_ = 0;
};

absl::Status CheckNotEmpty(const std::string& folder, const ImageListing& found) {
  if (!found.paths.empty()) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(folder, ": has no JPEG or PNG image in the folder of a class"));
}

}  // namespace

absl::StatusOr<ImageListing> ListImageClasses(const std::string& folder) {
  LS_ASSIGN_OR_RETURN(const FolderListing listing, List(folder));
  if (!listing.images.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        listing.images[0].string(), ": lies in no class; put it into a folder that is named after its class"));
  }
  ImageListing found;
  Walk walk(found);
  for (const fs::path& below : listing.folders) {
    const size_t before = found.paths.size();
    LS_RETURN_IF_ERROR(walk.Add(below, static_cast<int64_t>(found.classes.size())));
    if (found.paths.size() == before) {
      return absl::NotFoundError(absl::StrCat(below.string(), ": the class has no image; remove the folder"));
    }
    found.classes.push_back(below.filename().string());
  }
  LS_RETURN_IF_ERROR(CheckNotEmpty(folder, found));
  return found;
}

absl::StatusOr<ImageListing> ListImages(const std::string& folder) {
  ImageListing found;
  LS_RETURN_IF_ERROR(Walk(found).Add(folder, /*label=*/0));
  LS_RETURN_IF_ERROR(CheckNotEmpty(folder, found));
  return found;
}

absl::StatusOr<std::vector<std::string>> ImageClasses(const std::string& folder) {
  LS_ASSIGN_OR_RETURN(const FolderListing listing, List(folder));
  std::vector<std::string> names;
  for (const fs::path& path : listing.folders) names.push_back(path.filename().string());
  return names;
}

}  // namespace lockstep::worker
