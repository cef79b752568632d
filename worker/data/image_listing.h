// Which images a folder holds, and in which class each is, as torchvision's ImageFolder: one folder in it per class;
// classes are numbered in the order of their names.
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
  std::vector<int64_t> labels;       // of each, its class
  std::vector<std::string> classes;  // their names
};

// A class has the images in its folder in the order of their names, then those of the folders in it. NotFound: no
// image, or a class without one. InvalidArgument: an image of a kind that is not read, or in no class. Messages name
// the file.
absl::StatusOr<ImageListing> ListImageClasses(const std::string& folder);

// The same without classes; images may also lie in the folder itself, and come first.
absl::StatusOr<ImageListing> ListImages(const std::string& folder);

// The names of the classes of a folder, in their order, without a look into them. NotFound and others of the file
// system.
absl::StatusOr<std::vector<std::string>> ImageClasses(const std::string& folder);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_LISTING_H_
