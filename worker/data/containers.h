// Files that hold inputs and labels together: npz archives, CSV tables, TFRecord files of tf.Example. Which of their
// fields are read is the job's choice (field_choice.h).
//
// Threading: thread-safe (each reads one file).
#ifndef LOCKSTEP_WORKER_DATA_CONTAINERS_H_
#define LOCKSTEP_WORKER_DATA_CONTAINERS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "protos/job.pb.h"
#include "worker/data/stored_data.h"

namespace lockstep::worker {

// Codes of all three as OpenDataSource.

// Each array is a field, called by its name without ".npy"; the first dimension counts the samples.
absl::StatusOr<StoredData> ReadNpz(const job::DataFiles& files, const ReadOptions& options);

// Each column is a field of numbers; those that are inputs form one vector. Rows are samples. Columns that are not
// asked for may hold anything.
absl::StatusOr<StoredData> ReadCsv(const job::DataFiles& files, const ReadOptions& options);

// Each feature of the first record is a field: bytes as uint8, floats, integers, of the same number in every record.
absl::StatusOr<StoredData> ReadTfRecord(const job::DataFiles& files, const ReadOptions& options);

// Whether `start`, the first bytes of a file, are those of a TFRecord file.
bool LooksLikeTfRecord(absl::string_view start);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_CONTAINERS_H_
