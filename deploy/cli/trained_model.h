// The model of a job as it is in one of its checkpoints.
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

// The options that select a trained model.
struct TrainedModelChoice : CheckpointChoice {
  bool average = false;  // the average of the weights (train.ema)
};

// Adds the options of AddCheckpointChoice and --ema, which are parsed into `choice`; it must outlive the parsing.
void AddTrainedModelChoice(CLI::App& command, TrainedModelChoice& choice);

// The metagraph of `checkpoint`, which is in `place`. NotFound: it does not exist. DataLoss: it is damaged.
absl::StatusOr<MetaGraph> MetagraphOf(const JobPlace& place, const chief::CheckpointReader& checkpoint);

class TrainedModel {
 public:
  // Opens the selected checkpoint and verifies its content. NotFound and FailedPrecondition, with what to do: there is
  // no such checkpoint, or no average in it. DataLoss: it is damaged.
  static absl::StatusOr<TrainedModel> Open(const TrainedModelChoice& choice);

  const MetaGraph& metagraph() const { return metagraph_; }
  const chief::CheckpointReader& checkpoint() const { return checkpoint_; }
  // Makes Read return the average of the weights from now on, if there is one.
  void UseAverage() { choice_.average = choice_.average || metagraph_.update.ema.has_value(); }
  bool is_average() const { return choice_.average; }
  // "checkpoints/step-000000010 of DIR", and whether it is the average.
  std::string Describe() const;
  // Whether the checkpoint also has an average, beside the selected weights.
  bool has_other_weights() const { return metagraph_.update.ema.has_value() && !choice_.average; }
  // Reads a variable from the selected weights.
  absl::StatusOr<Tensor> Read(const Variable& variable) const;

 private:
  TrainedModel(TrainedModelChoice choice, std::unique_ptr<JobPlace> place, chief::CheckpointReader checkpoint,
               MetaGraph metagraph);

  TrainedModelChoice choice_;
  std::unique_ptr<JobPlace> place_;  // the checkpoint reads from it
  chief::CheckpointReader checkpoint_;
  MetaGraph metagraph_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_
