// Flattens a model into one list of nodes. Exporters write parts of a model as functions, named lists of nodes that are
// called like ops; every call is replaced by the function's nodes. An If holds two graphs, of which a condition chooses
// one; it is replaced by the nodes of both. A Loop or a Scan holds a graph that runs once per trip; it is replaced by
// the nodes of one trip, which the importer reads as often as there are trips (import_loops.cc).
//
// A value from outside reaches the nodes of a branch through BranchInput(condition, x): x where the branch is taken,
// else 0. BranchOutput(condition, then, else) chooses between the results. A branch that is not taken therefore
// computes on zeros, its results are unused, and no gradient leaves it. Both ops select instead of multiplying, so that
// a NaN in the other branch has no effect. The nodes of a trip are a branch, too: it is taken while the loop runs.
//
//   LoopBegin(inputs of the node) -> whether it runs, and what a trip is given
//     ... the nodes of one trip, and what is a branch in it ...
//   LoopEnd(what a trip gives) -> outputs of the node
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_
#define LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "protos/onnx.pb.h"

namespace lockstep {

// The domain of BranchInput and BranchOutput.
inline constexpr char kBranchDomain[] = "lockstep.branch";
// The domain of LoopBegin and LoopEnd.
inline constexpr char kLoopDomain[] = "lockstep.loop";
// Their attribute: the loop's place in FlatModel::loops.
inline constexpr char kLoopNumber[] = "loop";

// One side of an If, or the body of a loop.
struct Branch {
  std::string condition;  // a value outside of the branch
  bool when = true;       // the branch is taken when the condition has this value
  int outer = -1;         // the branch that the node stands in; -1: none
};

struct FlatModel {
  onnx::GraphProto nodes;                      // nodes alone
  std::deque<onnx::TensorProto> initializers;  // of branches and bodies
  std::vector<Branch> branches;                // an outer branch stands before its inner ones
  std::map<std::string, int> branch_of;        // by the first output of a node that belongs to a branch
  std::vector<onnx::NodeProto> loops;          // Loop and Scan with values named as here, without their bodies
};

// Returns the nodes of a model, with every call of one of its functions (calls inside functions too) replaced by the
// function's nodes, every If by the nodes of its branches and every loop by those of its body; an If on an initialiser
// keeps only the branch that is taken. Values inside a call or a body are named "<name of the node>/<name in it>",
// those of a branch "<name of the If>/then/<name>" or "/else/"; initialisers of a branch or body keep their names where
// these are free. InvalidArgument for functions that call themselves, for calls with more inputs or outputs than the
// function has, for functions of another opset than the model, for an If or a loop whose graphs do not fit it, and when
// the result exceeds 2^17 nodes or 1 GiB.
absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_
