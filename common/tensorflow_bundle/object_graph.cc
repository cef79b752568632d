#include "common/tensorflow_bundle/object_graph.h"

#include <algorithm>
#include <deque>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "common/tensorflow_bundle/varint.h"
#include "protos/tensorflow_bundle.pb.h"

namespace lockstep {
namespace {

constexpr size_t kMaxGraphCount = 1'000'000;  // of objects, and of what they hold: edges, variables, slots
constexpr size_t kRoot = 0;

// How a walk over all nodes came to one.
struct Arrival {
  size_t from = 0;
  const std::string* name = nullptr;  // of the edge; null: none came
};

// The way to `node`, gone backwards to the root.
absl::StatusOr<ObjectPath> PathTo(const size_t node, const std::vector<Arrival>& arrivals, PathBounds& bounds) {
  size_t bytes = 0;
  for (size_t at = node; at != kRoot && bytes <= kMaxPathBytes; at = arrivals[at].from) {
    bytes += arrivals[at].name->size() + 1;
  }
  LS_RETURN_IF_ERROR(bounds.Add(bytes));
  ObjectPath path;
  for (size_t at = node; at != kRoot; at = arrivals[at].from) path.push_back(*arrivals[at].name);
  std::reverse(path.begin(), path.end());
  return path;
}

absl::Status Malformed() { return absl::DataLossError("the graph of its objects is malformed"); }

// Hands the content of each field that has a length to `take`, whatever its number.
template <typename Take>
absl::Status ForEachLongField(absl::string_view in, Take take) {
  while (!in.empty()) {
    const std::optional<uint64_t> tag = TakeVarint(in);
    if (!tag.has_value()) return Malformed();
    const uint64_t wire_type = *tag & 7;
    uint64_t bytes = wire_type == 1 ? 8 : 4;
    if (wire_type == 0 || wire_type == 2) {
      const std::optional<uint64_t> number = TakeVarint(in);
      if (!number.has_value()) return Malformed();
      bytes = wire_type == 2 ? *number : 0;
    } else if (wire_type != 1 && wire_type != 5) {
      return Malformed();
    }
    if (bytes > in.size()) return Malformed();
    if (wire_type == 2) LS_RETURN_IF_ERROR(take(in.substr(0, bytes)));
    in.remove_prefix(bytes);
  }
  return absl::OkStatus();
}

// Before objects are made of them: one takes 50 times its bytes.
absl::Status CheckCounts(absl::string_view graph) {
  size_t nodes = 0, edges = 0;
  const auto too_many = [](absl::string_view what) {
    return absl::InvalidArgumentError(
        absl::StrCat("the graph of its objects has more than ", kMaxGraphCount, " ", what, ", which are not read"));
  };
  return ForEachLongField(graph, [&](absl::string_view node) -> absl::Status {
    if (++nodes > kMaxGraphCount) return too_many("objects");
    return ForEachLongField(node, [&](absl::string_view) -> absl::Status {
      return ++edges > kMaxGraphCount ? too_many("edges") : absl::OkStatus();
    });
  });
}

}  // namespace

absl::StatusOr<ObjectGraph> ObjectGraph::Parse(absl::string_view bytes) {
  LS_RETURN_IF_ERROR(CheckCounts(bytes));
  tf::TrackableObjectGraph proto;
  if (!proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())) || proto.nodes().empty()) {
    return Malformed();
  }
  ObjectGraph graph;
  graph.nodes_.resize(static_cast<size_t>(proto.nodes_size()));
  // Below the root and the model an optimizer is known by its name, everywhere by what it keeps for variables.
  std::set<size_t> holders = {kRoot};
  for (const auto& child : proto.nodes(0).children()) {
    if (child.local_name() == kModelObject) holders.insert(static_cast<size_t>(child.node_id()));
  }
  for (size_t i = 0; i < graph.nodes_.size(); ++i) {
    const tf::TrackableObjectGraph::Node& node = proto.nodes(static_cast<int>(i));
    for (const auto& child : node.children()) {
      if (child.node_id() < 0 || child.node_id() >= proto.nodes_size()) {
        return absl::DataLossError(
            absl::StrCat("the graph of its objects names object ", child.node_id(), " of ", proto.nodes_size()));
      }
      const bool is_optimizer = proto.nodes(child.node_id()).slot_variables_size() > 0 ||
                                (holders.contains(i) && child.local_name() == kOptimizerObject);
      const bool is_counter = i == kRoot && child.local_name() == kSaveCounterObject;
      if (is_optimizer || is_counter) continue;
      graph.nodes_[i].children.emplace(child.local_name(), static_cast<size_t>(child.node_id()));
    }
    for (const auto& attribute : node.attributes()) {
      if (attribute.name() != kVariableValue || graph.nodes_[i].variable.has_value()) continue;
      graph.nodes_[i].variable = graph.variables_.size();
      graph.variables_.push_back({attribute.checkpoint_key(), {}});
    }
  }
  LS_RETURN_IF_ERROR(graph.SetPaths());
  return graph;
}

absl::Status ObjectGraph::SetPaths() {
  std::vector<Arrival> arrivals(nodes_.size());
  std::deque<size_t> reached = {kRoot};
  std::vector<bool> seen(nodes_.size());
  PathBounds bounds;
  seen[kRoot] = true;
  for (; !reached.empty(); reached.pop_front()) {
    const size_t from = reached.front();
    if (nodes_[from].variable.has_value() && from != kRoot) {
      Variable& variable = variables_[*nodes_[from].variable];
      LS_ASSIGN_OR_RETURN(variable.path, PathTo(from, arrivals, bounds));
      LS_RETURN_IF_ERROR(bounds.Add(variable.key.size()));
      const std::optional<ObjectPath> of_key = PathOfKey(variable.key);
      if (of_key.has_value() && Leads(*of_key, from)) variable.path = *of_key;
    }
    for (const auto& [name, to] : nodes_[from].children) {
      if (seen[to]) continue;
      seen[to] = true;
      arrivals[to] = {from, &name};
      reached.push_back(to);
    }
  }
  return absl::OkStatus();
}

bool ObjectGraph::Leads(const ObjectPath& path, size_t to) const {
  size_t node = kRoot;
  for (const std::string& name : path) {
    const auto child = nodes_[node].children.find(name);
    if (child == nodes_[node].children.end()) return false;
    node = child->second;
  }
  return node == to;
}

std::optional<size_t> ObjectGraph::Find(absl::string_view name) const {
  const auto model = nodes_[kRoot].children.find(kModelObject);
  if (model != nodes_[kRoot].children.end()) {
    if (const std::optional<size_t> found = FindFrom(model->second, name)) return found;
  }
  return FindFrom(kRoot, name);
}

// An edge's name may have a '.' in it, so that each '.' of `name` may end one or not.
std::optional<size_t> ObjectGraph::FindFrom(size_t node, absl::string_view name) const {
  std::set<std::pair<size_t, size_t>> seen;  // nodes, and how much of `name` led there
  std::vector<std::pair<size_t, size_t>> open = {{node, 0}};
  while (!open.empty()) {
    const auto [at, begin] = open.back();
    open.pop_back();
    for (size_t end = begin; end <= name.size(); ++end) {
      if (end < name.size() && name[end] != '.') continue;
      const auto child = nodes_[at].children.find(std::string(name.substr(begin, end - begin)));
      if (child == nodes_[at].children.end()) continue;
      if (end == name.size()) {
        if (nodes_[child->second].variable.has_value()) return nodes_[child->second].variable;
      } else if (seen.emplace(child->second, end + 1).second) {
        open.emplace_back(child->second, end + 1);
      }
    }
  }
  return std::nullopt;
}

}  // namespace lockstep
