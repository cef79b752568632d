// Trained weights that a job may begin from (`model.from`): a checkpoint of a job, a file of safetensors, or a folder
// of such files as Hugging Face lays them out; in a directory or in a bucket.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WARM_START_WEIGHT_SOURCE_H_
#define LOCKSTEP_CHIEF_WARM_START_WEIGHT_SOURCE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "protos/job.pb.h"

namespace lockstep::chief {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // What it holds, under its own names.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // Where it lies, and of a job also which checkpoint: for people.
  const std::string& description() const { return description_; }
  // All bytes of one tensor. REQUIRES: `out` has its size. DataLoss: they are damaged.
  virtual absl::Status Read(size_t tensor, absl::Span<char> out) const = 0;

 protected:
  WeightSource(std::vector<TensorSpec> tensors, std::string description)
      : tensors_(std::move(tensors)), description_(std::move(description)) {}

 private:
  std::vector<TensorSpec> tensors_;
  std::string description_;
};

// Opens what `from` names; reads no tensor yet. NotFound: nothing of the kind is there. InvalidArgument: it is
// something else, or a key of `from` does not go with it. DataLoss: it is damaged. Else codes of the storage.
absl::StatusOr<std::unique_ptr<WeightSource>> OpenWeights(const job::WarmStart& from);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_WEIGHT_SOURCE_H_
