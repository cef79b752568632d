// Readers of files that hold inputs and labels together: npz archives, CSV tables, TFRecord files of tf.Example. The
// job chooses which of their fields are read (field_choice.h).
//
// Threading: thread-safe; blocks on the file system.
#ifndef LOCKSTEP_WORKER_DATA_CONTAINERS_H_
#define LOCKSTEP_WORKER_DATA_CONTAINERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// All three return the codes of OpenDataSource.

// Each array is a field, named as its member without ".npy"; the first dimension counts the samples.
absl::StatusOr<StoredData> ReadNpz(const job::DataFiles& files, const ReadOptions& options);

// Rows are samples and columns numeric fields; the input columns form one vector. Columns that are not read may hold
// anything.
absl::StatusOr<StoredData> ReadCsv(const job::DataFiles& files, const ReadOptions& options);

// Each feature of the first record is a field of bytes (uint8), floats or integers; every record must have the same
// number of elements in it.
absl::StatusOr<StoredData> ReadTfRecord(const job::DataFiles& files, const ReadOptions& options);

// Whether `start`, the first bytes of a file, look like the beginning of a TFRecord file.
bool LooksLikeTfRecord(absl::string_view start);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_CONTAINERS_H_
