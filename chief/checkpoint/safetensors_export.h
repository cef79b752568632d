// Exports tensors of a checkpoint to one safetensors file, as other programs load it.
//
// Threading: thread-safe; blocks on both storages.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_SAFETENSORS_EXPORT_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_SAFETENSORS_EXPORT_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

struct SafetensorsExport {
  int tensors = 0;
  uint64_t bytes = 0;  // of the file
};

// Writes the tensors of `group` (kModelGroup, …) durably to `path` of `storage`, under the names in the checkpoint's
// files; replaces an existing file. Each tensor is read once and verified on the way. After an error `path` has its old
// content. `on_bytes` receives the number of tensor bytes written since the last call. NotFound: the checkpoint has no
// such group, or was removed meanwhile. DataLoss: it is damaged. Else codes of the storages.
absl::StatusOr<SafetensorsExport> ExportSafetensors(const CheckpointReader& checkpoint, absl::string_view group,
                                                    Storage& storage, absl::string_view path,
                                                    const CheckpointReader::OnBytes& on_bytes = nullptr);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_SAFETENSORS_EXPORT_H_
