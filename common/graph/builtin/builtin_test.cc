// The built-in architectures as metagraphs: sizes, refusals, how their weights begin. What they compute is compared
// with PyTorch in tests/conformance/pytorch/builtin_training_test.cc.
#include "common/graph/builtin/builtin.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "common/graph/build/build_metagraph.h"
#include "common/graph/initial_state.h"
#include "common/graph/state_layout.h"
#include "common/random/random.h"

namespace lockstep {
namespace {

using Catch::Matchers::Contains;

MetaGraphRequest RequestFor(const ModelSpec& model, DType dtype, const Shape& sample, const Shape& label) {
  MetaGraphRequest request;
  request.model = model;
  request.inputs = {{"inputs", "inputs", InputRole::kFeature, dtype, sample, {}},
                    {"labels", "labels", InputRole::kLabel, DType::kI64, label, {}}};
  request.update.schedule.lr = 0.05;
  request.pass_batch = 2;
  return request;
}

std::string Refusal(const MetaGraphRequest& request) {
  const auto metagraph = BuildMetaGraph(request);
  REQUIRE_FALSE(metagraph.ok());
  CHECK(metagraph.status().code() == absl::StatusCode::kInvalidArgument);
  return std::string(metagraph.status().message());
}

int64_t TrainedValues(const MetaGraph& metagraph) {
  int64_t values = 0;
  for (const Variable& variable : metagraph.forward.variables) {
    if (variable.kind == VariableKind::kParameter) values += NumElements(variable.shape);
  }
  return values;
}

TEST_CASE("builtin: published sizes have the published numbers of parameters", "[graph]") {
  const Shape image = {kBatchDim, 3, 32, 32};
  const Shape tokens = {kBatchDim, 8};
  const Shape one = {kBatchDim};
  const auto values = [](const MetaGraphRequest& request) { return TrainedValues(BuildMetaGraph(request).value()); };

  CHECK(values(RequestFor({.architecture = "resnet18", .outputs = 1000}, DType::kF32, image, one)) == 11689512);
  CHECK(values(RequestFor({.architecture = "resnet34", .outputs = 1000}, DType::kF32, image, one)) == 21797672);
  CHECK(values(RequestFor({.architecture = "resnet50", .outputs = 1000}, DType::kF32, image, one)) == 25557032);
  CHECK(values(RequestFor({.architecture = "gpt2"}, DType::kI64, tokens, tokens)) == 124439808);
  CHECK(values(RequestFor({.architecture = "gpt2", .layers = 48, .heads = 25, .width = 1600}, DType::kI64, tokens,
                          tokens)) == 1557611200);
  CHECK(values(RequestFor({.architecture = "bert", .outputs = 2, .context = 512, .vocabulary = 30522}, DType::kI64,
                          tokens, one)) == 109483778);
  CHECK(values(RequestFor({.architecture = "vit", .outputs = 1000}, DType::kF32, {kBatchDim, 3, 224, 224}, one)) ==
        86567656);
}

TEST_CASE("builtin: the token table of gpt2 is one variable that is read twice", "[graph]") {
  const ModelSpec model{.architecture = "gpt2", .layers = 1, .heads = 2, .width = 8, .context = 8, .vocabulary = 11};
  const Shape tokens = {kBatchDim, 8};

  const MetaGraph metagraph = BuildMetaGraph(RequestFor(model, DType::kI64, tokens, tokens)).value();

  int readers = 0;
  for (const Node& node : metagraph.forward.nodes) {
    readers += static_cast<int>(std::count(node.inputs.begin(), node.inputs.end(), "transformer.wte.weight"));
  }
  CHECK(readers == 2);
  CHECK(metagraph.loss.classes_last);
}

TEST_CASE("builtin: settings and inputs that do not fit are refused with what to change", "[graph]") {
  const Shape tokens = {kBatchDim, 8};
  const Shape one = {kBatchDim};
  const ModelSpec gpt2{.architecture = "gpt2", .layers = 1, .heads = 2, .width = 8, .context = 8, .vocabulary = 11};
  ModelSpec uneven = gpt2;
  uneven.heads = 3;
  ModelSpec dropping = gpt2;
  dropping.dropout = 1;

  CHECK_THAT(Refusal(RequestFor(uneven, DType::kI64, tokens, tokens)), Contains("3 heads do not divide the width 8"));
  CHECK_THAT(Refusal(RequestFor(gpt2, DType::kI64, {kBatchDim, 9}, {kBatchDim, 9})), Contains("raise the context"));
  CHECK_THAT(Refusal(RequestFor(gpt2, DType::kF32, tokens, tokens)), Contains("takes token numbers"));
  ModelSpec wide = gpt2;
  wide.context = 65536;
  const Shape many = {kBatchDim, 8193};
  CHECK_THAT(Refusal(RequestFor(wide, DType::kI64, many, many)),
             Contains("has 8193 tokens; at most 8192") && Contains("data.train.sequence_length"));
  CHECK_THAT(Refusal(RequestFor(dropping, DType::kI64, tokens, tokens)), Contains("outside of [0, 1)"));
  CHECK_THAT(Refusal(RequestFor({.architecture = "resnet18"}, DType::kF32, {kBatchDim, 32}, one)),
             Contains("takes images"));
  CHECK_THAT(
      Refusal(RequestFor({.architecture = "vit", .width = 24, .patch = 5}, DType::kF32, {kBatchDim, 3, 8, 8}, one)),
      Contains("do not divide images"));
  CHECK_THAT(Refusal(RequestFor({.architecture = "resnet19"}, DType::kF32, tokens, one)),
             Contains("unknown model 'resnet19'") && Contains("resnet18"));
}

TEST_CASE("initial state: normal weights have the deviation of their rule", "[graph]") {
  const ModelSpec model{.architecture = "gpt2", .layers = 2, .heads = 2, .width = 64, .context = 8, .vocabulary = 501};
  const Shape tokens = {kBatchDim, 8};
  const MetaGraph metagraph = BuildMetaGraph(RequestFor(model, DType::kI64, tokens, tokens)).value();
  const StateLayout layout = MakeStateLayout(metagraph);

  const std::vector<Tensor> state = *MakeInitialState(metagraph, 3);

  const auto wte = state[layout.Find("transformer.wte.weight")].elements<float>();
  double sum = 0, squares = 0, beyond_two = 0;
  for (const float element : wte) {
    sum += element;
    squares += static_cast<double>(element) * element;
    beyond_two += std::fabs(element) > 0.04 ? 1 : 0;
  }
  const auto count = static_cast<double>(wte.size());
  CHECK(std::fabs(sum / count) < 4 * 0.02 / std::sqrt(count));
  CHECK(std::sqrt(squares / count) == Approx(0.02).epsilon(0.02));
  CHECK(beyond_two / count == Approx(0.0455).epsilon(0.1));
  // The formula of the header, with other functions.
  const RandomStream stream = RandomStream::For(3, StreamOfName("transformer.wte.weight"));
  for (const uint64_t pair : {0, 1, 1000}) {
    const double distance = std::sqrt(-2 * std::log((stream.At(2 * pair) + 1.0) / 4294967296.0));
    const double angle = 2 * 3.141592653589793 * (stream.At(2 * pair + 1) / 4294967296.0);
    CHECK(wte[2 * pair] == Approx(0.02 * distance * std::cos(angle)).epsilon(1e-6));
    CHECK(wte[2 * pair + 1] == Approx(0.02 * distance * std::sin(angle)).epsilon(1e-6));
  }
  double residual = 0;
  const auto projection = state[layout.Find("transformer.h.1.mlp.c_proj.weight")].elements<float>();
  for (const float element : projection) residual += static_cast<double>(element) * element;
  CHECK(std::sqrt(residual / static_cast<double>(projection.size())) == Approx(0.01).epsilon(0.03));
}

}  // namespace
}  // namespace lockstep
