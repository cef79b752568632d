// A data set in several files: expands path patterns and concatenates the files' samples.
//
// Threading: thread-safe (pure functions); ExpandPatterns blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_MANY_FILES_H_
#define LOCKSTEP_WORKER_DATA_MANY_FILES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// Returns a copy of `files` for each file that its paths name. A path that is no file may be a shell pattern (* ?
// [...]) for all files that match, sorted bytewise. The i-th labels file belongs to the i-th inputs file. NotFound:
// nothing matches. InvalidArgument: inputs and labels match different numbers of files.
absl::StatusOr<std::vector<job::DataFiles>> ExpandPatterns(const job::DataFiles& files);

// Joins the samples of all parts in order, as if they came from one file, and frees the parts' memory on the way.
// Numbers of CSV tables become float64 if those of one part are. InvalidArgument names the first file whose fields
// differ from the first file's. REQUIRES: at least one part.
absl::StatusOr<StoredData> Concatenate(std::vector<StoredData> parts);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_MANY_FILES_H_
