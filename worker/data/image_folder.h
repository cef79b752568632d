// A folder of images, one folder in it per class (image_listing.h), as stored data: decoded and held, or left in the
// files.
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_
#define LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_

#include "absl/status/statusor.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// One feature, uint8 [channels, height, width], and the label, int64: the number of the class. InvalidArgument: an
// image of another size where no image_size is given, or other classes than the job's. ResourceExhausted: over the
// memory limit. Others as of ListImageClasses and ImageFile. Messages name the file; of several that are wrong, the
// first.
absl::StatusOr<StoredData> ReadImageFolder(const job::DataFiles& files, const ReadOptions& options);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_IMAGE_FOLDER_H_
