// Reads an ONNX model as a graph of the op set: functions are inlined, subgraphs of constants folded, axes and shapes
// turned into attributes, initialisers sorted into variables and constants. The op set has ONNX's meaning, so this only
// reads: it does not translate between two sets of semantics.
//
// Threading: immutable; reading blocks on the file system.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_IMPORT_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_IMPORT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/graph/metagraph.h"
#include "common/graph/onnx/onnx_file.h"
#include "common/graph/ops/ir.h"
#include "common/graph/training_account.h"

namespace lockstep {

// Executes one node on given inputs (null for an omitted one) and returns all its outputs. The importer folds constants
// with it, so that it needs no kernels of its own.
using NodeEvaluator =
    std::function<absl::StatusOr<std::vector<Tensor>>(const Node& node, absl::Span<const Tensor* const> inputs)>;

struct OnnxImportOptions {
  NodeEvaluator evaluate;  // REQUIRES: not null
  // The batch that a symbolic first dimension of an input stands for. 0: every dimension has to be a number.
  int64_t batch = 0;
  // False: initialisers stay constants, as for a model that is only run.
  bool trainable = true;
  // As the job's `model.batch_norm`: empty, "train", "freeze", or patterns of the batch normalisations to freeze.
  std::vector<std::string> batch_norm;
  // Patterns (parameter_patterns.h) of values of the file through which no gradient flows, and of buffers that stay
  // constant although the model changes them.
  std::vector<std::string> stop_gradient;
  std::vector<std::string> constant_buffers;
  // Second names of tied parameters, and the names under which the file has them.
  std::map<std::string, std::string> tied;
  // Draws the parameters anew: they start normally distributed with the standard deviation of their values in the file,
  // or constant at the mean where the mean outweighs the deviation; running means start at 0, variances at 1.
  bool redraw = false;
  // Values of graph inputs that are known before anything runs; a model may compute shapes and axes from them.
  const std::map<std::string, Tensor>* known_inputs = nullptr;
};

struct ImportedModel {
  // Buffers that the model changes are statistics that the graph moves (moved_statistics.h).
  // Inputs with a symbolic batch begin with kBatchDim; attributes hold the batch of the options where the model
  // computes with it. `values` is empty.
  Graph graph;
  // Initial values of the variables by name; a variable without a value in the file starts by its InitRule.
  std::map<std::string, Tensor> initial;
  // Further names in the model's state dict: second names of tied parameters, step counts of batch normalisations.
  std::vector<StateAlias> aliases;
  ImportNotes notes;
  // Set by LoadModel: what in the model computes with the number of samples in a batch (UseOfBatch); empty: nothing.
  std::string use_of_batch;
  // Messages for the user: parameters that nothing uses, a dropout that never drops.
  std::vector<std::string> warnings;
};

// InvalidArgument names the node or the tensor and says what to do; Unimplemented names the node whose op is not in the
// set.
absl::StatusOr<ImportedModel> ImportOnnx(OnnxFile file, const OnnxImportOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_IMPORT_H_
