// Reads an ONNX model as a graph of the op set: functions are inlined, subgraphs of constants folded, axes and shapes
// turned into attributes, initialisers sorted into variables and constants. The op set has ONNX's meaning, so this is a
// reader and not a second language.
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

// Executes one node on given inputs (null for an omitted one) and returns all its outputs. What folds constants: the
// kernels that define the op set are not repeated here.
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
  // Patterns (parameter_patterns.h) of values of the file behind which nothing is differentiated, and of buffers that
  // stay as they are although the model changes them.
  std::vector<std::string> stop_gradient;
  std::vector<std::string> constant_buffers;
  // Second names of tied parameters, and the names under which the file has them.
  std::map<std::string, std::string> tied;
  // Parameters begin anew: normally distributed with the deviation of their values in the file, or, where the mean
  // outweighs it, at the mean; statistics at 0 and 1.
  bool redraw = false;
  // Inputs of the graph whose values are known although they are inputs: for shapes and axes that have to be.
  const std::map<std::string, Tensor>* known_inputs = nullptr;
};

struct ImportedModel {
  // Buffers that the model changes are statistics that the graph moves (moved_statistics.h).
  // Inputs with a symbolic batch begin with kBatchDim; attributes hold the batch of the options where the model
  // computes with it. `values` is empty.
  Graph graph;
  // Initial values of the variables by name; variables that the file gives none for begin by a rule of their own.
  std::map<std::string, Tensor> initial;
  // What else the state dict of the model has: second names of tied parameters, counts of batch normalisations.
  std::vector<StateAlias> aliases;
  ImportNotes notes;
  // What a user should know: parameters that nothing uses, a dropout that never drops.
  std::vector<std::string> warnings;
};

// InvalidArgument names the node, or the tensor, and what to do; Unimplemented names the node whose op is not in the
// set.
absl::StatusOr<ImportedModel> ImportOnnx(OnnxFile file, const OnnxImportOptions& options);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_IMPORT_H_
