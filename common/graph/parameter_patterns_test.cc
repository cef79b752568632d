#include "common/graph/parameter_patterns.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using Catch::Contains;

Graph FourVariables() {
  Graph graph;
  for (const char* name : {"enc.weight", "enc.bias", "head.weight", "head.bias"}) {
    graph.variables.push_back({name, DType::kF32, {1}, VariableKind::kParameter, {}});
  }
  graph.variables.push_back({"enc.running_mean", DType::kF32, {1}, VariableKind::kStatistic, {}});
  return graph;
}

std::vector<std::string> Trained(const Graph& graph) {
  std::vector<std::string> names;
  for (const Variable& variable : graph.variables) {
    if (variable.kind == VariableKind::kParameter) names.push_back(variable.name);
  }
  return names;
}

TEST_CASE("patterns: trainable chooses, frozen takes out, statistics are left alone", "[graph]") {
  Graph graph = FourVariables();

  REQUIRE(ChooseTrained(&graph, {"head.*", "*.bias"}, {"enc.b*"}).ok());

  CHECK(Trained(graph) == std::vector<std::string>{"head.weight", "head.bias"});
  CHECK(graph.variables[0].kind == VariableKind::kFrozen);
  CHECK(graph.variables[4].kind == VariableKind::kStatistic);
}

TEST_CASE("patterns: one that nothing matches is named with its key", "[graph]") {
  Graph graph = FourVariables();

  const absl::Status none = ChooseTrained(&graph, {}, {"decoder.*"});
  const auto statistic = MatchParameters(graph, {"*running_mean"}, "train.optimizer.no_decay");

  CHECK_THAT(std::string(none.message()), Contains("model.frozen") && Contains("decoder.*") && Contains("enc.weight"));
  CHECK_THAT(std::string(statistic.status().message()), Contains("train.optimizer.no_decay"));
  CHECK(MatchParameters(graph, {"*.weight"}, "key").value() == std::set<std::string>{"enc.weight", "head.weight"});
}

TEST_CASE("patterns: a model of which nothing is trained is refused", "[graph]") {
  Graph graph = FourVariables();

  CHECK_THAT(std::string(ChooseTrained(&graph, {}, {"*"}).message()), Contains("no parameter to train"));
}

}  // namespace
}  // namespace lockstep
