// Reads a folder of images with one subfolder per class (image_listing.h): decoded into memory, or left in the files.
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_

#include "absl/status/statusor.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// One feature, uint8 [channels, height, width], and the label, int64: the number of the class. InvalidArgument: images
// of different sizes without image_size, or classes other than the job's. ResourceExhausted: over the memory limit.
// Other errors are those of ListImageClasses and ImageFile. Messages name the first bad file.
absl::StatusOr<StoredData> ReadImageFolder(const job::DataFiles& files, const ReadOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_
