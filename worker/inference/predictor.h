// What a trained model gives for the samples of a data set, batch by batch and in their order.
//
// Every batch is computed alike, the last one filled up with the set's first sample: the rows of a batch depend on the
// weights, its samples, the batch's size and the kernels, not on which batches were computed before, or where.
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
    std::vector<SignatureInput> signature;
    int64_t batch = 0;  // samples of a pass
    // What models that draw random numbers draw by.
    uint64_t seed = 0;
    int64_t step = 0;
  };

  // Plans `graph`, of MakePredictionGraph with that batch, with the weights that `read` gives. `device` and `source`
  // outlive the predictor. Errors of Plan::Make and DeviceWeights::Load; Internal when an input is fed by no field of
  // the data, or by one of another size.
  static absl::StatusOr<std::unique_ptr<Predictor>> Make(device::Device& device, const Graph& graph,
                                                         const ReadVariable& read, const DataSource& source,
                                                         Options options);

  // One row of what is predicted.
  const TensorSpec& row() const { return row_; }
  int64_t row_bytes() const;
  // Batches of the whole set; the last may have fewer samples.
  int64_t batches() const;

  // The rows of batch `index`, one per sample of the set; there until the next call. Blocks; errors of the plan.
  absl::StatusOr<absl::Span<const std::byte>> Run(int64_t index);

 private:
  Predictor(DeviceWeights weights, std::unique_ptr<Plan> plan, const DataSource& source, Options options);

  const DeviceWeights weights_;  // which the plan reads
  const std::unique_ptr<Plan> plan_;
  const DataSource& source_;
  const Options options_;
  TensorSpec row_;
  std::vector<int> fields_;  // per input of the plan
  EvalBatch batch_;
  std::vector<std::byte> rows_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_INFERENCE_PREDICTOR_H_
