// A small state with all kinds of tensors that an export to TensorFlow distinguishes, for tests: layers, a tied weight,
// a running statistic, a step counter, a table of another type, slots, exponents and averages.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_TEST_STATE_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_TEST_STATE_H_

#include <string>

#include "chief/checkpoint/checkpoint_test_util.h"
#include "common/graph/metagraph.h"
#include "common/graph/state_tensors.h"

namespace lockstep::chief {

inline MetaGraph TensorflowTestGraph(OptimizerKind optimizer = OptimizerKind::kAdamW) {
  MetaGraph metagraph;
  metagraph.forward.variables = {{"features.0.weight", DType::kF32, {3, 2}, VariableKind::kParameter, {}},
                                 {"features.0.bias", DType::kF32, {3}, VariableKind::kParameter, {}},
                                 {"norm.running_mean", DType::kF32, {3}, VariableKind::kStatistic, {}},
                                 {"table", DType::kBF16, {2, 0, 2}, VariableKind::kFrozen, {}},
                                 {"places", DType::kI64, {4}, VariableKind::kFrozen, {}}};
  metagraph.aliases = {{"head.weight", "features.0.weight"}, {"norm.num_batches_tracked", kStepCounterName}};
  metagraph.update.optimizer.kind = optimizer;
  metagraph.update.optimizer.momentum = optimizer == OptimizerKind::kSgd ? 0.9 : 0.0;
  metagraph.update.ema = EmaRule{.decay = 0.99};
  return metagraph;
}

// Element i of tensor t is t + i / 4; step counters are `step`, and second names have the bytes of the first.
inline SmallState TensorflowTestState(const MetaGraph& metagraph, int64_t step) {
  const StateLayout layout = MakeStateLayout(metagraph);
  SmallState state(step);
  state.layout = ToCheckpointTensors(layout);
  state.bytes.clear();
  for (size_t t = 0; t < layout.tensors.size(); ++t) {
    const StateTensor& tensor = layout.tensors[t];
    const int of = tensor.kind == StateKind::kAlias ? layout.Find(tensor.variable) : -1;
    if (of >= 0 && static_cast<size_t>(of) < t) {
      state.bytes.push_back(state.bytes[static_cast<size_t>(of)]);
      continue;
    }
    Tensor values = Tensor::Zeros(tensor.spec.dtype, tensor.spec.shape);
    for (int64_t i = 0; i < values.num_elements(); ++i) {
      const auto at = static_cast<size_t>(i);
      if (tensor.spec.dtype == DType::kF32) values.elements<float>()[at] = static_cast<float>(t) + 0.25f * at;
      if (tensor.spec.dtype == DType::kI32) values.elements<int32_t>()[at] = static_cast<int32_t>(t);
      if (tensor.spec.dtype == DType::kI64) values.elements<int64_t>()[at] = tensor.spec.shape.empty() ? step : i - 1;
    }
    state.bytes.emplace_back(reinterpret_cast<const char*>(values.data()), static_cast<size_t>(values.byte_size()));
  }
  return state;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_TENSORFLOW_TEST_STATE_H_
