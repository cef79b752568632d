// Small changes to a graph, and shape inference over it.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_GRAPH_GRAPH_EDITOR_H_
#define LOCKSTEP_COMMON_GRAPH_GRAPH_EDITOR_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/graph/ops/ir.h"

namespace lockstep {

// Returns `name`, or a variation of it that no input, variable, constant or node output has, for a value that is added
// to a graph whose names come from elsewhere. Names of nodes are not considered: they form a namespace of their own.
std::string FreshName(const Graph& graph, std::string name);

// Replaces kBatchDim by `batch` in the shapes of the inputs.
void BindBatch(Graph* graph, int64_t batch);

// The only batch for which the graph computes, which its inputs state then (BindBatch); 0: any.
int64_t OnlyBatch(const Graph& graph);

// Fills graph->values from inputs, variables, constants and nodes. InvalidArgument names the node that does not fit.
// REQUIRES: the batch is bound.
absl::Status InferShapes(Graph* graph);

// Appends an input or a constant together with its value's info.
void AppendInput(Graph* graph, GraphInput input);
void AppendConstant(Graph* graph, const std::string& name, Tensor value);

// Renames one output of a node wherever it is written, read or listed as an output. REQUIRES: `to` is not taken.
void RenameValue(Graph* graph, const std::string& from, const std::string& to);

// Makes every reader of `from`, and the list of outputs, read `to` instead.
void ReplaceReads(Graph* graph, const std::string& from, const std::string& to);

// Removes nodes and constants that no output depends on, and their values. Inputs and variables stay.
void RemoveDeadCode(Graph* graph);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_GRAPH_EDITOR_H_
