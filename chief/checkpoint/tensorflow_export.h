// Exports a checkpoint in the format of TensorFlow: an index and its data files (docs/formats/tensorflow.md).
//
// Threading: thread-safe; blocks on both storages.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_EXPORT_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_EXPORT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/checkpoint/tensorflow_plan.h"
#include "common/storage/storage.h"
#include "common/tensorflow_bundle/bundle_writer.h"

namespace lockstep::chief {

struct TensorflowExport {
  uint64_t bytes = 0;  // of all files
  // Whether the file `checkpoint` of the folder names this export as the newest; false: that file is another program's
  // and stays.
  bool is_newest = true;
};

// Writes PREFIX.index and its data files durably to `storage`, and names them in the file `checkpoint` beside them,
// unless another program wrote that file. Each tensor is read once and verified on the way. After an error either
// nothing new exists, or only the file `checkpoint` lacks the new name. `on_bytes` receives the number of tensor bytes
// written since the last call. AlreadyExists: a checkpoint or a data file of that prefix exists. FailedPrecondition:
// `plan` is of another metagraph. NotFound: the checkpoint was removed meanwhile. DataLoss: it is damaged. Else codes
// of the storages.
absl::StatusOr<TensorflowExport> ExportTensorflow(const CheckpointReader& checkpoint, const TensorflowPlan& plan,
                                                  Storage& storage, absl::string_view prefix,
                                                  const CheckpointReader::OnBytes& on_bytes = nullptr,
                                                  uint64_t shard_bytes = BundleWriter::kShardBytes);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_EXPORT_H_
