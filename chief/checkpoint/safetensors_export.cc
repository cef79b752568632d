#include "chief/checkpoint/safetensors_export.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/safetensors.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

// The tensors of a group in the order of a file.
struct GroupTensors {
  std::vector<TensorSpec> specs;
  std::vector<size_t> positions;  // in layout()
};

GroupTensors InOrder(const std::vector<CheckpointReader::TensorInFile>& tensors) {
  std::vector<TensorSpec> specs;
  for (const auto& tensor : tensors) specs.push_back(tensor.spec);
  GroupTensors ordered;
  for (const int i : SafetensorsOrder(specs)) {
    ordered.specs.push_back(tensors[static_cast<size_t>(i)].spec);
    ordered.positions.push_back(tensors[static_cast<size_t>(i)].position);
  }
  return ordered;
}

absl::StatusOr<SafetensorsExport> Write(const CheckpointReader& checkpoint, const GroupTensors& tensors,
                                        WritableFile& file, const CheckpointReader::OnBytes& on_bytes) {
  LS_ASSIGN_OR_RETURN(const std::string header, EncodeSafetensorsHeader(tensors.specs));
  LS_RETURN_IF_ERROR(file.Append(header));
  SafetensorsExport written{.tensors = static_cast<int>(tensors.specs.size()), .bytes = header.size()};
  for (const size_t position : tensors.positions) {
    LS_RETURN_IF_ERROR(checkpoint.StreamTensor(position, [&](absl::string_view piece) -> absl::Status {
      LS_RETURN_IF_ERROR(file.Append(piece));
      written.bytes += piece.size();
      if (on_bytes) on_bytes(piece.size());
      return absl::OkStatus();
    }));
  }
  LS_RETURN_IF_ERROR(file.Sync());
  LS_RETURN_IF_ERROR(file.Close());
  return written;
}

}  // namespace

absl::StatusOr<SafetensorsExport> ExportSafetensors(const CheckpointReader& checkpoint, absl::string_view group,
                                                    Storage& storage, absl::string_view path,
                                                    const CheckpointReader::OnBytes& on_bytes) {
  const GroupTensors tensors = InOrder(checkpoint.TensorsOf(group));
  if (tensors.specs.empty()) {
    return absl::NotFoundError(absl::StrCat(checkpoint.path(), " holds no tensors of the group '", group, "'"));
  }
  const std::string scratch = JoinPath(ParentPath(path), absl::StrCat(".", BaseName(path), ".partial"));
  LS_RETURN_IF_ERROR(storage.RemoveTree(scratch));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, storage.CreateFile(scratch, Access::kShared));
  absl::StatusOr<SafetensorsExport> written = Write(checkpoint, tensors, *file, on_bytes);
  const absl::Status placed = written.ok() ? storage.Replace(scratch, path) : written.status();
  if (placed.ok()) return written;
  storage.RemoveTree(scratch).IgnoreError();
  return placed;
}

}  // namespace lockstep::chief
