#include "deploy/cli/trained_model.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/metagraph/artifact_store.h"
#include "common/checkpoint_format/naming.h"
#include "common/graph/serialize.h"
#include "common/graph/state_layout.h"
#include "common/status/status_macros.h"

namespace lockstep::cli {
namespace {

absl::StatusOr<std::string> NameOfMetagraph(absl::string_view bytes) {
  LS_ASSIGN_OR_RETURN(const MetaGraph metagraph, ParseMetaGraph(bytes));
  return Fingerprint(metagraph);
}

}  // namespace

void AddTrainedModelChoice(CLI::App& command, TrainedModelChoice& choice) {
  AddCheckpointChoice(command, choice);
  command.add_flag("--ema", choice.average, "The average of the weights instead of the weights (train.ema)");
}

absl::StatusOr<MetaGraph> MetagraphOf(const JobPlace& place, const chief::CheckpointReader& checkpoint) {
  LS_ASSIGN_OR_RETURN(
      const std::string bytes,
      chief::LoadArtifact(place.storage(), layout::kMetagraphs, checkpoint.manifest().fingerprint(), NameOfMetagraph));
  return ParseMetaGraph(bytes);
}

TrainedModel::TrainedModel(TrainedModelChoice choice, std::unique_ptr<JobPlace> place,
                           chief::CheckpointReader checkpoint, MetaGraph metagraph)
    : choice_(std::move(choice)),
      place_(std::move(place)),
      checkpoint_(std::move(checkpoint)),
      metagraph_(std::move(metagraph)) {}

absl::StatusOr<TrainedModel> TrainedModel::Open(const TrainedModelChoice& choice) {
  LS_ASSIGN_OR_RETURN(std::unique_ptr<JobPlace> place, JobPlace::Open(choice.directory));
  LS_ASSIGN_OR_RETURN(chief::CheckpointReader checkpoint, OpenChosen(*place, choice));
  LS_RETURN_IF_ERROR(checkpoint.VerifyContent());
  LS_ASSIGN_OR_RETURN(MetaGraph metagraph, MetagraphOf(*place, checkpoint));
  if (choice.average && !metagraph.update.ema.has_value()) return NoAverage(checkpoint);
  return TrainedModel(choice, std::move(place), std::move(checkpoint), std::move(metagraph));
}

std::string TrainedModel::Describe() const {
  return absl::StrCat(checkpoint_.path(), " of ", choice_.directory,
                      choice_.average ? ", the average of the weights" : "");
}

absl::StatusOr<Tensor> TrainedModel::Read(const Variable& variable) const {
  LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(variable.dtype, variable.shape));
  const absl::Span<char> out(reinterpret_cast<char*>(tensor.data()), static_cast<size_t>(tensor.byte_size()));
  LS_RETURN_IF_ERROR(checkpoint_.ReadTensor(choice_.average ? EmaName(variable.name) : variable.name, 0, out));
  return tensor;
}

}  // namespace lockstep::cli
