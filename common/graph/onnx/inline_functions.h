// A model's nodes as one list. Exporters write parts of a model as functions: named lists of nodes that are called like
// ops; a call is replaced by what it calls. And an If holds two graphs, of which a condition chooses one; its node is
// replaced by the nodes of both.
//
// A value from outside reaches the nodes of a branch through BranchInput(condition, x): x where the branch is taken,
// else 0. BranchOutput(condition, then, else) chooses between the results. So a branch that is not taken computes on
// zeros, nobody reads what comes of it, and no gradient leaves it: both ops choose, they never multiply.
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

// One side of an If.
struct Branch {
  std::string condition;  // a value outside of it
  bool when = true;       // it is taken where the condition is this
  int outer = -1;         // the branch that the If stands in; -1: none
};

struct FlatModel {
  onnx::GraphProto nodes;                      // nodes alone
  std::deque<onnx::TensorProto> initializers;  // of branches
  std::vector<Branch> branches;                // each behind the one that it stands in
  std::map<std::string, int> branch_of;        // by the first output of a node, where it stands in one
};

// The nodes of a model with every call of its own functions, also within functions, replaced by what it calls, and with
// the branches of every If among them; nothing else of its graph. Of an If on an initialiser only the branch that is
// taken. Values inside a call are named "<name of the call>/<name in the function>", those of a branch "<name of the
// If>/then/<name>" or "/else/"; initialisers of a branch keep their names where these are free. InvalidArgument for
// functions that call themselves, for calls with more inputs or outputs than the function has, for functions of
// another opset than the model, for an If whose branches do not fit it, and for what makes more than 2^17 nodes or 1
// GiB so.
absl::StatusOr<FlatModel> FlattenModel(const onnx::ModelProto& model);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_ONNX_INLINE_FUNCTIONS_H_
