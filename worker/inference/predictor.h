// Computes a trained model's predictions for a data set, batch by batch in the order of the samples.
//
// All batches have the same size; the last is padded with the set's first sample. The rows of a batch depend on the
// weights, its samples, the batch size and the kernels, but not on the batches before it or on the machine.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_INFERENCE_PREDICTOR_H_
#define LOCKSTEP_WORKER_INFERENCE_PREDICTOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "worker/data/batch_reader.h"
#include "worker/data/data_source.h"
#include "worker/device/device.h"
#include "worker/inference/device_weights.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

class Predictor {
 public:
  struct Options {
    std::string output;  // of the model
    int64_t batch = 0;   // samples of a pass
    // The key of random numbers, for models that draw any.
    uint64_t seed = 0;
    int64_t step = 0;
  };

  // Plans the prediction of options.output with the weights from `read`. The last pass, if it has fewer samples, is
  // filled up, or has a plan of its own where samples of the model see each other (SamplesAreApart). `device` and
  // `source` outlive the predictor. Errors of MakePredictionGraph, Plan::Make and DeviceWeights::Load; Internal when no
  // field of the data feeds an input, or one of another size.
  static absl::StatusOr<std::unique_ptr<Predictor>> Make(device::Device& device, const MetaGraph& metagraph,
                                                         const ReadVariable& read, const DataSource& source,
                                                         Options options);

  // Type and shape of one prediction.
  const TensorSpec& row() const { return row_; }
  int64_t row_bytes() const;
  // The number of batches of the set; the last may have fewer samples.
  int64_t batches() const;

  // Computes the rows of batch `index`, one per sample of the set; valid until the next call. Blocks; errors of the
  // plan.
  absl::StatusOr<absl::Span<const std::byte>> Run(int64_t index);

 private:
  // A plan for passes of `samples` samples.
  struct Pass {
    int64_t samples = 0;
    std::unique_ptr<Plan> plan;
    std::vector<int> fields;  // per input of the plan
    EvalBatch batch;
  };

  Predictor(DeviceWeights weights, const DataSource& source, Options options)
      : weights_(std::move(weights)), source_(source), options_(std::move(options)) {}

  absl::Status AddPass(device::Device& device, const MetaGraph& metagraph, const Graph& graph, int64_t samples);

  const DeviceWeights weights_;  // read by the plans
  const DataSource& source_;
  const Options options_;
  std::vector<Pass> passes_;  // full ones, and that of the rest if it is computed alone
  TensorSpec row_;
  std::vector<std::byte> rows_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_PREDICTOR_H_
