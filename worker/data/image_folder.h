// A folder of images, one folder in it per class, as torchvision's ImageFolder reads it: classes are numbered in the
// order of their names. The images are decoded and scaled when the data are opened, by several threads, and held.
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// One feature, uint8 [channels, height, width], and the label, int64: the number of the class. A class has the
// images in its folder in the order of their names, then those of the folders in it. Without labels images may also lie
// in `files.inputs` itself, and come first.
// NotFound: no image, or a class without one. InvalidArgument: an image of a kind that is not read, of another size
// where no image_size is given, or in no class. DataLoss: a corrupt one. ResourceExhausted: over the memory limit.
// Messages name the file; of several that are wrong, the first.
absl::StatusOr<StoredData> ReadImageFolder(const job::DataFiles& files, const ReadOptions& options);

// The names of the classes of a folder, in their order, without a look into them. NotFound and others of the file
// system.
absl::StatusOr<std::vector<std::string>> ImageClasses(const std::string& folder);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_
