#include "common/graph/metagraph_diff.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_join.h"
#include "common/graph/build/lenet_metagraph.h"
#include "common/graph/ops/conv.h"
#include "common/graph/serialize.h"

namespace lockstep {
namespace {

using Catch::Contains;
using Lines = std::vector<std::string>;

Lines Diff(const MetaGraph& before, const MetaGraph& after) {
  return DiffMetaGraphs(SerializeMetaGraph(before).value(), SerializeMetaGraph(after).value()).value();
}

// What LeNet with a change differs in from itself.
Lines DiffAfter(const std::function<void(MetaGraph&)>& change) {
  MetaGraph changed = Lenet();
  change(changed);
  return Diff(Lenet(), changed);
}

Variable& Find(MetaGraph& metagraph, const std::string& name) {
  for (Variable& variable : metagraph.forward.variables) {
    if (variable.name == name) return variable;
  }
  FAIL("no variable " << name);
  return metagraph.forward.variables.front();
}

TEST_CASE("metagraph diff: a metagraph does not differ from itself, nor from one with nodes in another order",
          "[graph]") {
  CHECK(Diff(Lenet(), Lenet()).empty());
  CHECK(DiffAfter([](MetaGraph& changed) {
          std::swap(changed.forward.variables.front(), changed.forward.variables.back());
        }).empty());
}

TEST_CASE("metagraph diff: what changed is named by its place, with both values, a list as a whole", "[graph]") {
  CHECK(DiffAfter([](MetaGraph& changed) {
          Find(changed, "fc3.weight").shape = {100, 42};
        }) == Lines{"forward.variables[fc3.weight].shape: [10, 84] -> [100, 42]"});
  CHECK(DiffAfter([](MetaGraph& changed) { Find(changed, "fc3.bias").dtype = DType::kBF16; }) ==
        Lines{"forward.variables[fc3.bias].dtype: \"F32\" -> \"BF16\""});
  CHECK(DiffAfter([](MetaGraph& changed) { changed.pass_batch = 16; }) == Lines{"pass_batch: 32 -> 16"});
  CHECK(DiffAfter([](MetaGraph& changed) { changed.update.clip_global_norm = 1; }) ==
        Lines{"update.clip_global_norm: none -> 1"});
  CHECK(DiffAfter([](MetaGraph& changed) { changed.update.schedule.lr = 0.1; }) ==
        Lines{"update.schedule.lr: 0.05 -> 0.1"});
  const Lines adam =
      DiffAfter([](MetaGraph& changed) { changed.update.optimizer = {.kind = OptimizerKind::kAdam, .no_decay = {}}; });
  CHECK_THAT(absl::StrJoin(adam, "\n"), Contains("update.optimizer.kind: SGD -> ADAM"));
  const Lines ema = DiffAfter([](MetaGraph& changed) { changed.update.ema = EmaRule{.decay = 0.5}; });
  REQUIRE(ema.size() == 1);
  CHECK_THAT(ema[0], Contains("update.ema: none -> ") && Contains("decay: 0.5"));
}

TEST_CASE("metagraph diff: what one side lacks is named as such, and nothing behind it as changed", "[graph]") {
  CHECK(DiffAfter([](MetaGraph& changed) { changed.forward.variables.erase(changed.forward.variables.begin()); }) ==
        Lines{"forward.variables[conv1.weight]: only in the first"});
  CHECK(DiffAfter([](MetaGraph& changed) {
          changed.forward.variables.insert(changed.forward.variables.begin(),
                                           {"gate", DType::kF32, {3}, VariableKind::kParameter, {}});
        }) == Lines{"forward.variables[gate]: only in the second"});
  CHECK(DiffAfter([](MetaGraph& changed) {
          changed.aliases = {{"head.weight", "fc3.weight"}};
        }) == Lines{"aliases[head.weight]: only in the second"});
}

TEST_CASE("metagraph diff: of a node the attribute that differs is named", "[graph]") {
  const Lines lines = DiffAfter([](MetaGraph& changed) {
    for (Node& node : changed.forward.nodes) {
      if (node.op != OpType::kConv) continue;
      std::get<ConvAttributes>(node.attributes).strides = {2, 2};
      return;
    }
  });
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Contains("forward.nodes[") && Contains("attributes[strides]") && Contains("-> [2, 2]"));
}

TEST_CASE("metagraph diff: bytes that are no metagraph are refused", "[graph]") {
  const std::string lenet = SerializeMetaGraph(Lenet()).value();
  CHECK(absl::IsInvalidArgument(DiffMetaGraphs(lenet, "no metagraph").status()));
  CHECK(absl::IsInvalidArgument(DiffMetaGraphs("", lenet).status()));
}

}  // namespace
}  // namespace lockstep
