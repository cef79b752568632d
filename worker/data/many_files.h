// One data set in several files: paths that are patterns, and the files' samples one after another.
//
// Threading: thread-safe (pure functions); ExpandPatterns blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_MANY_FILES_H_
#define LOCKSTEP_WORKER_DATA_MANY_FILES_H_

#include <vector>

#include "absl/status/statusor.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// `files` once for each of the files that its paths name: a path that is no file may be a pattern of a shell (* ?
// [...]), which stands for all that match, sorted by their bytes. Labels go with inputs in that order. NotFound:
// nothing matches. InvalidArgument: inputs and labels match different numbers of files.
absl::StatusOr<std::vector<job::DataFiles>> ExpandPatterns(const job::DataFiles& files);

// The samples of all parts in their order, as if they had come from one file; the parts' memory is given back on the
// way. Numbers of tables are float64 where those of one part are. InvalidArgument names the first file that holds other
// fields than the first one. REQUIRES: at least one part.
absl::StatusOr<StoredData> Concatenate(std::vector<StoredData> parts);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_MANY_FILES_H_
