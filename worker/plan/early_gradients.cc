#include "worker/plan/early_gradients.h"

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace lockstep::worker {
namespace {

// Ops that make a gradient of one that is there.
bool Finishes(OpType op) {
  switch (op) {
    case OpType::kCast:
    case OpType::kScale:
    case OpType::kTranspose:
    case OpType::kReshape:
    case OpType::kFlatten:
    case OpType::kSqueeze:
    case OpType::kUnsqueeze:
      return true;
    default:
      return false;
  }
}

// By value, the nodes that follow the one that makes it, in order.
using Followers = std::map<std::string, std::vector<size_t>>;

Followers FindFollowers(const Graph& graph) {
  std::set<std::string> made;
  for (const Node& node : graph.nodes) made.insert(node.outputs.begin(), node.outputs.end());
  const std::set<std::string> outputs(graph.outputs.begin(), graph.outputs.end());
  std::set<std::string> held;  // what a node reads that does not follow
  std::set<std::string> followed;
  Followers followers;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    const std::string& result = node.outputs[0];
    const bool finishes = Finishes(node.op) && made.count(node.inputs[0]) > 0 &&
                          (outputs.count(result) > 0 || (followed.count(result) > 0 && held.count(result) == 0));
    if (!finishes) {
      held.insert(node.inputs.begin(), node.inputs.end());
      continue;
    }
    followed.insert(node.inputs[0]);
    std::vector<size_t>& behind = followers[node.inputs[0]];
    behind.insert(behind.begin(), i);
  }
  return followers;
}

// Moves node `i`, and behind it what follows it.
void Append(size_t i, const Followers& followers, std::vector<Node>* from, std::vector<Node>* to) {
  const std::vector<std::string> results = (*from)[i].outputs;
  to->push_back(std::move((*from)[i]));
  for (const std::string& result : results) {
    const auto found = followers.find(result);
    if (found == followers.end()) continue;
    for (const size_t follower : found->second) Append(follower, followers, from, to);
  }
}

}  // namespace

void FinishGradientsEarly(Graph* graph) {
  const Followers followers = FindFollowers(*graph);
  std::set<size_t> moved;
  for (const auto& [value, behind] : followers) moved.insert(behind.begin(), behind.end());
  std::vector<Node> nodes = std::move(graph->nodes);
  graph->nodes.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (moved.count(i) == 0) Append(i, followers, &nodes, &graph->nodes);
  }
}

}  // namespace lockstep::worker
