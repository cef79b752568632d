// The model of a job's directory as it stands in a checkpoint.
//
// Threading: thread-compatible; every call blocks on the file system.
#ifndef LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_
#define LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/graph/metagraph.h"
#include "common/job_place/job_place.h"
#include "common/tensor/tensor.h"
#include "deploy/cli/checkpoint_choice.h"

namespace lockstep::cli {

// Which trained model is meant.
struct TrainedModelChoice : CheckpointChoice {
  bool average = false;  // the average of the weights (train.ema)
};

// Those of AddCheckpointChoice and --ema, read into `choice`, which outlives the parsing.
void AddTrainedModelChoice(CLI::App& command, TrainedModelChoice& choice);

// The metagraph of which `checkpoint`, of `place`, is a state. NotFound: it is not there. DataLoss: it is damaged.
absl::StatusOr<MetaGraph> MetagraphOf(const JobPlace& place, const chief::CheckpointReader& checkpoint);

class TrainedModel {
 public:
  // The checkpoint that is meant; its content is verified. NotFound and FailedPrecondition, with what to do, when there
  // is no such checkpoint or no average in it; DataLoss.
  static absl::StatusOr<TrainedModel> Open(const TrainedModelChoice& choice);

  const MetaGraph& metagraph() const { return metagraph_; }
  const chief::CheckpointReader& checkpoint() const { return checkpoint_; }
  // Reads the average of the weights from now on, where there is one.
  void UseAverage() { choice_.average = choice_.average || metagraph_.update.ema.has_value(); }
  bool is_average() const { return choice_.average; }
  // "checkpoints/step-000000010 of DIR", and whether it is the average.
  std::string Describe() const;
  // True when it holds an average of its weights beside the weights that were chosen.
  bool has_other_weights() const { return metagraph_.update.ema.has_value() && !choice_.average; }
  // The variable as it was chosen.
  absl::StatusOr<Tensor> Read(const Variable& variable) const;

 private:
  TrainedModel(TrainedModelChoice choice, std::unique_ptr<JobPlace> place, chief::CheckpointReader checkpoint,
               MetaGraph metagraph);

  TrainedModelChoice choice_;
  std::unique_ptr<JobPlace> place_;  // which the checkpoint reads from
  chief::CheckpointReader checkpoint_;
  MetaGraph metagraph_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_
