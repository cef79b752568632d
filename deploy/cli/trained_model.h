// The model of a job's directory as it stands in a checkpoint.
//
// Threading: thread-compatible; every call blocks on the file system.
#ifndef LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_
#define LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "common/graph/metagraph.h"
#include "common/storage/storage.h"
#include "common/tensor/tensor.h"

namespace lockstep::cli {

class TrainedModel {
 public:
  // The checkpoint of `step`, or the newest that is whole; its content is verified. Errors of OpenCheckpoint, DataLoss.
  static absl::StatusOr<TrainedModel> Open(const std::string& directory, std::optional<int64_t> step);

  const MetaGraph& metagraph() const { return metagraph_; }
  // "step-000000010"
  std::string checkpoint() const { return checkpoint_.path(); }
  // True when the job averages its weights.
  bool has_average() const { return metagraph_.update.ema.has_value(); }
  // FailedPrecondition, with what to do, when there is no average.
  absl::Status RequireAverage() const;
  // The variable as it is trained, or, with `averaged`, its average. REQUIRES: then has_average.
  absl::StatusOr<Tensor> Read(const Variable& variable, bool averaged) const;

 private:
  TrainedModel(std::unique_ptr<Storage> storage, chief::CheckpointReader checkpoint, MetaGraph metagraph);

  std::unique_ptr<Storage> storage_;  // which the checkpoint reads from
  chief::CheckpointReader checkpoint_;
  MetaGraph metagraph_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TRAINED_MODEL_H_
