#include "deploy/cli/trained_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/metagraph/artifact_store.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::cli {
namespace {

absl::StatusOr<std::string> NameOfMetagraph(absl::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const MetaGraph metagraph, ParseMetaGraph(bytes));
  return Fingerprint(metagraph);
}

}  // namespace

TrainedModel::TrainedModel(std::unique_ptr<Storage> storage, chief::CheckpointReader checkpoint, MetaGraph metagraph)
    : storage_(std::move(storage)), checkpoint_(std::move(checkpoint)), metagraph_(std::move(metagraph)) {}

absl::StatusOr<TrainedModel> TrainedModel::Open(const std::string& directory, std::optional<int64_t> step) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<LocalStorage> storage, LocalStorage::Open(directory));
  LS_ASSIGN_OR_RETURN(chief::CheckpointReader checkpoint, chief::OpenCheckpoint(*storage, step));
  LS_RETURN_IF_ERROR(checkpoint.VerifyContent());
  LS_ASSIGN_OR_RETURN(
      const std::string bytes,
      chief::LoadArtifact(*storage, layout::kMetagraphs, checkpoint.manifest().fingerprint(), NameOfMetagraph));
  LS_ASSIGN_OR_RETURN(MetaGraph metagraph, ParseMetaGraph(bytes));
  return TrainedModel(std::move(storage), std::move(checkpoint), std::move(metagraph));
}

absl::Status TrainedModel::RequireAverage() const {
  if (has_average()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(checkpoint(), " holds no average of the weights: the job has no `train.ema`; leave out --ema"));
}

absl::StatusOr<Tensor> TrainedModel::Read(const Variable& variable, bool averaged) const {
  LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(variable.dtype, variable.shape));
  const absl::Span<char> out(reinterpret_cast<char*>(tensor.data()), static_cast<size_t>(tensor.byte_size()));
  LS_RETURN_IF_ERROR(checkpoint_.ReadTensor(averaged ? EmaName(variable.name) : variable.name, 0, out));
  return tensor;
}

}  // namespace lockstep::cli
