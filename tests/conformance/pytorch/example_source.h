// A data source of one batch, which every step uses as a whole, so that nothing depends on an order.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_CONFORMANCE_PYTORCH_EXAMPLE_SOURCE_H_
#define LOCKSTEP_TESTS_CONFORMANCE_PYTORCH_EXAMPLE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/tensor/tensor.h"
#include "worker/data/data_source.h"

namespace lockstep::worker {

// A batch as arrays.
struct Example {
  std::vector<Tensor> inputs;
  Tensor labels;
};

class ExampleSource final : public DataSource {
 public:
  ExampleSource(Example example, const MetaGraph& metagraph) : example_(std::move(example)) {
    for (const SignatureInput& input : metagraph.signature) {
      fields_.push_back({input.field, input.dtype, Shape(input.shape.begin() + 1, input.shape.end())});
    }
  }

  int64_t num_samples() const override { return example_.labels.shape()[0]; }
  const std::vector<TensorSpec>& fields() const override { return fields_; }
  absl::Status Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    const bool label = field == static_cast<int>(example_.inputs.size());
    const Tensor& array = label ? example_.labels : example_.inputs[static_cast<size_t>(field)];
    const int64_t bytes = array.byte_size() / num_samples();
    for (size_t i = 0; i < indices.size(); ++i) {
      std::memcpy(out.data() + static_cast<int64_t>(i) * bytes, array.data() + indices[i] * bytes,
                  static_cast<size_t>(bytes));
    }
    return absl::OkStatus();
  }
  int64_t held_bytes() const override { return 0; }
  const std::string& content_hash() const override { return hash_; }

 private:
  Example example_;
  std::vector<TensorSpec> fields_;
  std::string hash_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_TESTS_CONFORMANCE_PYTORCH_EXAMPLE_SOURCE_H_
