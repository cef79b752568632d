#include "common/graph/picked_rows.h"

#include <catch2/catch.hpp>
#include <memory>

namespace lockstep {
namespace {

Node Pick(const std::string& table, const std::string& index, int64_t axis) {
  return {table + "/" + index, OpType::kGather, {table, index}, {table + "." + index}, GatherAttributes{axis}};
}

TEST_CASE("picked rows: an input may hold what the smallest table that it goes to has", "[graph]") {
  Graph graph;
  graph.inputs = {{"tokens", DType::kI64, {kBatchDim, 4}}, {"kinds", DType::kI64, {kBatchDim, 4}}};
  graph.variables = {{"words", DType::kF32, {100, 8}, VariableKind::kParameter, {}}};
  graph.constants = {{"kind", std::make_shared<const Tensor>(Tensor::Zeros(DType::kF32, {2, 8}))}};
  graph.nodes = {Pick("words", "tokens", 0), Pick("kind", "kinds", -2)};

  CHECK(PickedRows(graph, "tokens") == IndexRange{-100, 99, "the rows of 'words'"});
  CHECK(PickedRows(graph, "kinds") == IndexRange{-2, 1, "the rows of 'kind'"});
  graph.nodes.push_back(Pick("words", "kinds", 0));
  CHECK(PickedRows(graph, "kinds") == IndexRange{-2, 1, "the rows of 'kind'"});
  graph.nodes.push_back(Pick("kind", "tokens", 0));
  CHECK(PickedRows(graph, "tokens") == IndexRange{-2, 1, "the rows of 'kind'"});
}

TEST_CASE("picked rows: columns, computed tables and other inputs say nothing", "[graph]") {
  Graph graph;
  graph.inputs = {{"tokens", DType::kI64, {kBatchDim, 4}}};
  graph.variables = {{"words", DType::kF32, {100, 8}, VariableKind::kParameter, {}}};
  graph.nodes = {Pick("words", "tokens", 1), Pick("computed", "tokens", 0)};

  CHECK(PickedRows(graph, "tokens") == std::nullopt);
  CHECK(PickedRows(graph, "labels") == std::nullopt);
}

}  // namespace
}  // namespace lockstep
