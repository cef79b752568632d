// Small metagraphs with initial states and deterministic data, for tests of plans.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_PLAN_PLAN_TEST_MODELS_H_
#define LOCKSTEP_WORKER_PLAN_PLAN_TEST_MODELS_H_

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/passes/training_graph.h"
#include "common/random/random.h"
#include "worker/plan/plan.h"

namespace lockstep::worker {

template <typename T>
T Must(absl::StatusOr<T> value) {
  INFO(value.status().ToString());
  REQUIRE(value.ok());
  return *std::move(value);
}

inline void MustOk(const absl::Status& status) {
  INFO(status.ToString());
  REQUIRE(status.ok());
}

inline MetaGraphRequest ImageRequest(const std::string& architecture, int64_t batch) {
  MetaGraphRequest request;
  request.model.architecture = architecture;
  request.inputs = {{"images", "images", InputRole::kFeature, DType::kF32, {kBatchDim, 1, 28, 28}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.schedule.lr = 0.05;
  request.pass_batch = batch;
  return request;
}

inline MetaGraph LenetModel(int64_t batch) { return Must(BuildMetaGraph(ImageRequest("lenet", batch))); }

// Two hidden layers with batch normalisation and dropout.
inline MetaGraph MlpModel(int64_t batch) {
  MetaGraphRequest request = ImageRequest("mlp", batch);
  request.model.hidden_sizes = {24, 16};
  request.model.dropout = 0.25;
  request.model.batch_norm = true;
  return Must(BuildMetaGraph(request));
}

// The variables of a graph at step 0, with their addresses.
struct TestVariables {
  TestVariables(const MetaGraph& metagraph, uint64_t seed) {
    const StateLayout layout = MakeStateLayout(metagraph);
    for (const StateTensor& tensor : layout.tensors) {
      if (tensor.kind == StateKind::kAlias) continue;
      if (tensor.group != StateGroup::kModel) continue;
      tensors.push_back(Must(MakeInitialTensor(metagraph, tensor, seed)));
      addresses[tensor.spec.name] = tensors.back().data();
    }
  }
  std::vector<Tensor> tensors;
  std::map<std::string, std::byte*> addresses;
};

// One host tensor per input of the plan: features in [-1, 1), labels in [0, 10), a mask of ones.
struct TestInputs {
  TestInputs(const std::vector<TensorSpec>& specs, uint64_t seed) {
    for (const TensorSpec& spec : specs) {
      Tensor tensor = Tensor::Zeros(spec.dtype, spec.shape);
      const RandomStream stream = RandomStream::For(seed, StreamOfName(spec.name));
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        const uint32_t bits = stream.At(static_cast<uint64_t>(i));
        const auto at = static_cast<size_t>(i);
        if (spec.dtype == DType::kI64) {
          tensor.elements<int64_t>()[at] = bits % 10;
        } else {
          tensor.elements<float>()[at] = spec.name == kMaskInput ? 1.0f : SymmetricUnit(bits);
        }
      }
      tensors.push_back(std::move(tensor));
    }
    for (const Tensor& tensor : tensors) bytes.push_back(tensor.bytes());
  }
  std::vector<Tensor> tensors;
  std::vector<InputBytes> bytes;
};

// An output of F32 after the pass.
inline std::vector<float> ReadFloats(Plan& plan, const std::string& name) {
  const int output = plan.FindOutput(name);
  REQUIRE(output >= 0);
  std::vector<float> values(static_cast<size_t>(NumElements(plan.outputs()[static_cast<size_t>(output)].shape)));
  MustOk(plan.ReadOutput(
      output, absl::Span<std::byte>(reinterpret_cast<std::byte*>(values.data()), values.size() * sizeof(float))));
  return values;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PLAN_PLAN_TEST_MODELS_H_
