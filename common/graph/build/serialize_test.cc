#include "common/graph/serialize.h"

#include <catch2/catch.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/graph/build/build_metagraph.h"

namespace lockstep {
namespace {

using Catch::Contains;

MetaGraph Mlp() {
  MetaGraphRequest request;
  request.model = {.architecture = "mlp", .outputs = 3, .hidden_sizes = {4}};
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, DType::kF32, {kBatchDim, 2}, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, {kBatchDim}, {}}};
  request.update.optimizer.momentum = 0.9;
  request.update.schedule.lr = 0.05;
  request.pass_batch = 2;
  return BuildMetaGraph(request).value();
}

TEST_CASE("metagraph: a model with a tensor that is called as one of the optimizer's is refused", "[graph]") {
  MetaGraph metagraph = Mlp();
  const auto refused = [](const MetaGraph& with) {
    return std::string(ParseMetaGraph(SerializeMetaGraph(with).value()).status().message());
  };

  metagraph.aliases = {{"momentum_buffer.fc1.bias", "fc1.bias"}};
  CHECK_THAT(refused(metagraph), Contains("'momentum_buffer.fc1.bias'") && Contains("keeps for 'fc1.bias'"));
  metagraph.aliases.clear();
  metagraph.forward.variables.push_back(metagraph.forward.variables[2]);
  metagraph.forward.variables.back().name = "momentum_buffer.fc2.weight";
  CHECK_THAT(refused(metagraph), Contains("train.optimizer.name"));
  metagraph.update.optimizer.momentum = 0;
  CHECK(refused(metagraph).empty());
}

TEST_CASE("metagraph: constants that no file can hold are an error, not the end", "[graph]") {
  MetaGraph metagraph = Mlp();
  const auto constant = std::make_shared<const Tensor>(Tensor::Zeros(DType::kF32, {1 << 20}));
  for (int i = 0; i < 512; ++i) metagraph.forward.constants.push_back({absl::StrCat("c", i), constant});

  for (const absl::Status& status : {SerializeMetaGraph(metagraph).status(), Fingerprint(metagraph).status()}) {
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(status.message()),
               Contains("2147483648 of them constants") && Contains("at most 2147483647"));
  }
}

}  // namespace
}  // namespace lockstep
