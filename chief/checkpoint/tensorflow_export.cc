#include "chief/checkpoint/tensorflow_export.h"

#include <map>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/tensorflow_bundle/checkpoint_state.h"

namespace lockstep::chief {
namespace {

// The variables that come from the checkpoint are there, in type and shape; their positions by name.
absl::StatusOr<std::map<std::string, size_t>> PositionsOf(const CheckpointReader& checkpoint,
                                                          const TensorflowPlan& plan) {
  std::map<std::string, size_t> positions;
  for (size_t i = 0; i < checkpoint.layout().size(); ++i) positions.emplace(checkpoint.layout()[i].spec.name, i);
  for (const TensorflowVariable& variable : plan.variables) {
    if (variable.tensor.empty()) continue;
    const auto found = positions.find(variable.tensor);
    TensorSpec spec = variable.spec;
    spec.name = variable.tensor;
    if (found != positions.end() && checkpoint.layout()[found->second].spec == spec) continue;
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint.path(), " does not hold tensor '", variable.tensor, "' as its metagraph has it"));
  }
  return positions;
}

// True when the folder's file `checkpoint` names `prefix` now.
absl::StatusOr<bool> NameNewest(Storage& storage, absl::string_view prefix) {
  const std::string path = JoinPath(ParentPath(prefix), kCheckpointStateFile);
  const absl::StatusOr<std::string> before = ReadWholeFile(storage, path, kMaxCheckpointStateBytes);
  if (before.ok() ? !IsOurCheckpointState(*before) : absl::IsDataLoss(before.status())) return false;
  if (!before.ok() && !absl::IsNotFound(before.status())) return before.status();
  const std::string scratch = JoinPath(ParentPath(prefix), absl::StrCat(".", kCheckpointStateFile, ".partial"));
  LS_RETURN_IF_ERROR(ReplaceFile(storage, scratch, path, EncodeCheckpointState(BaseName(prefix)), Access::kShared));
  return true;
}

}  // namespace

absl::StatusOr<TensorflowExport> ExportTensorflow(const CheckpointReader& checkpoint, const TensorflowPlan& plan,
                                                  Storage& storage, absl::string_view prefix,
                                                  const CheckpointReader::OnBytes& on_bytes, uint64_t shard_bytes) {
  LS_ASSIGN_OR_RETURN(const auto positions, PositionsOf(checkpoint, plan));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<BundleWriter> writer, BundleWriter::Begin(storage, prefix, shard_bytes));
  for (const TensorflowVariable& variable : plan.variables) {
    LS_RETURN_IF_ERROR(writer->Add(variable.spec, [&](const BundleWriter::TakeBytes& take) -> absl::Status {
      const auto hand_on = [&](absl::string_view piece) -> absl::Status {
        LS_RETURN_IF_ERROR(take(piece));
        if (on_bytes) on_bytes(piece.size());
        return absl::OkStatus();
      };
      if (variable.tensor.empty()) return hand_on(variable.bytes);
      return checkpoint.StreamTensor(positions.at(variable.tensor), hand_on);
    }));
  }
  LS_RETURN_IF_ERROR(writer->AddString(kObjectGraphKey, plan.graph));
  TensorflowExport written;
  LS_ASSIGN_OR_RETURN(written.bytes, writer->Finish());
  LS_ASSIGN_OR_RETURN(written.is_newest, NameNewest(storage, prefix));
  return written;
}

}  // namespace lockstep::chief
