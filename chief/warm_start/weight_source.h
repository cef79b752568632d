// An opened source of trained weights: tensors under the names of the source.
//
// Threading: thread-compatible; every call blocks on the storage.
#ifndef LOCKSTEP_CHIEF_WARM_START_WEIGHT_SOURCE_H_
#define LOCKSTEP_CHIEF_WARM_START_WEIGHT_SOURCE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep::chief {

class WeightSource {
 public:
  virtual ~WeightSource() = default;
  // The tensors of the source, under its own names.
  const std::vector<TensorSpec>& tensors() const { return tensors_; }
  // Where the source is, and the checkpoint if it is a job's, for people.
  const std::string& description() const { return description_; }
  // The tensor that has `name` as a second name; nullopt if none has.
  virtual std::optional<size_t> FindSecondName(absl::string_view name) const = 0;
  // Reads all bytes of one tensor. REQUIRES: `out` has its size. DataLoss: they are damaged.
  virtual absl::Status Read(size_t tensor, absl::Span<char> out) const = 0;

 protected:
  WeightSource(std::vector<TensorSpec> tensors, std::string description)
      : tensors_(std::move(tensors)), description_(std::move(description)) {}

 private:
  std::vector<TensorSpec> tensors_;
  std::string description_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_WARM_START_WEIGHT_SOURCE_H_
