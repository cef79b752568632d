// Lists the images of a folder and their classes, as torchvision's ImageFolder: one subfolder per class; classes are
// numbered in the order of their names.
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_LISTING_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_LISTING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::worker {

struct ImageListing {
  std::vector<std::string> paths;
  std::vector<int64_t> labels;       // the class of each path
  std::vector<std::string> classes;  // the names of the classes
};

// The images of a class are those in its folder in the order of their names, then those of its subfolders. NotFound: no
// image, or a class without one. InvalidArgument: an image of an unsupported format, or outside of every class.
// Messages name the file.
absl::StatusOr<ImageListing> ListImageClasses(const std::string& folder);

// The same without classes; images in `folder` itself come first.
absl::StatusOr<ImageListing> ListImages(const std::string& folder);

// The names of the classes of a folder, in order, without listing their images. Errors of the file system, NotFound
// among them.
absl::StatusOr<std::vector<std::string>> ImageClasses(const std::string& folder);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_LISTING_H_
