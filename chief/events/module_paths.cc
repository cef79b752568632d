#include "chief/events/module_paths.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/graph/state_names.h"

namespace lockstep::chief {
namespace {

std::string Within(const std::string& module, const std::string& name) {
  return module.empty() ? name : absl::StrCat(module, "/", name);
}

std::string ModuleOf(const std::string& path) { return path.substr(0, std::max<size_t>(path.rfind('/') + 1, 1) - 1); }

// The innermost module that both stand in.
std::string SharedModule(const std::string& a, const std::string& b) {
  const std::vector<std::string> left = absl::StrSplit(a, '/');
  const std::vector<std::string> right = absl::StrSplit(b, '/');
  const auto end = std::mismatch(left.begin(), left.end(), right.begin(), right.end()).first;
  return absl::StrJoin(left.begin(), end, "/");
}

// The module that a node's own name, or a variable that it reads, puts it in.
std::optional<std::string> KnownModule(const Node& node, const std::set<std::string>& variables) {
  const std::string path = ModulePath(node.name);
  if (absl::StrContains(path, '/')) return ModuleOf(path);
  for (const std::string& input : node.inputs) {
    if (variables.count(input) == 0) continue;
    const std::string layer = LayerOf(input);
    return layer.empty() ? "" : ModulePath(layer);
  }
  return std::nullopt;
}

std::vector<std::string> ModulesOf(const Graph& graph) {
  std::set<std::string> variables;
  for (const Variable& variable : graph.variables) variables.insert(variable.name);
  const size_t size = graph.nodes.size();
  std::vector<std::optional<std::string>> known;
  for (const Node& node : graph.nodes) known.push_back(KnownModule(node, variables));
  std::vector<std::string> modules(size), after(size);
  for (size_t i = size; i-- > 0;) after[i] = known[i].has_value() ? *known[i] : i + 1 < size ? after[i + 1] : "";
  std::string before;
  for (size_t i = 0; i < size; ++i) {
    if (known[i].has_value()) before = *known[i];
    modules[i] = known[i].has_value() ? *known[i] : SharedModule(before, after[i]);
  }
  return modules;
}

}  // namespace

std::string ModulePath(absl::string_view name) {
  const char* const separator = absl::StrContains(name, '/') ? "/" : ".";
  std::string path = absl::StrJoin(absl::StrSplit(name, separator, absl::SkipEmpty()), "/");
  for (char& c : path) {
    if (!absl::ascii_isalnum(c) && !absl::StrContains("/._-", c)) c = '_';
  }
  return path.empty() ? "_" : path;
}

ModulePaths FindModulePaths(const Graph& graph) {
  ModulePaths paths;
  const std::vector<std::string> modules = ModulesOf(graph);
  std::map<std::string, std::string> readers;  // by value: the module of the first node that reads it
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const std::string path = ModulePath(graph.nodes[i].name);
    const bool stands = absl::StrContains(path, '/') || path == modules[i];  // a layer of one node has its name
    paths.nodes.push_back(stands ? path : Within(modules[i], path));
    for (const std::string& input : graph.nodes[i].inputs) readers.emplace(input, modules[i]);
  }
  for (const Constant& constant : graph.constants) {
    const std::string path = ModulePath(constant.name);
    paths.constants.push_back(absl::StrContains(path, '/') ? path : Within(readers[constant.name], path));
  }
  return paths;
}

}  // namespace lockstep::chief
