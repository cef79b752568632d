// BERT (Devlin, Chang, Lee and Toutanova, "BERT: pre-training of deep bidirectional transformers for language
// understanding", 2018) with a classifier of whole sequences.
#include "absl/strings/str_cat.h"
#include "common/graph/builtin/architectures.h"
#include "common/graph/builtin/layer_writer.h"
#include "common/graph/builtin/transformer.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr double kBertDeviation = 0.02;
constexpr double kBertEpsilon = 1e-12;
constexpr int64_t kTokenTypes = 2;

class BertWriter {
 public:
  BertWriter(const ModelSpec& model, const GraphInput& input)
      : model_(model), layers_(input), shape_{input.shape[1], model.heads, model.width} {}

  Graph Write() {
    std::string x = Embed();
    for (int64_t i = 0; i < model_.layers; ++i) x = Block(absl::StrCat("bert.encoder.layer.", i), x);
    x = layers_.Reshape("bert.encoder.sequence", x, {-1, shape_.length, model_.width});
    x = layers_.Add("bert.pooler.first", OpType::kSlice, {x}, SliceAttributes{{0}, {1}, {1}, {1}});
    x = layers_.Reshape("bert.pooler.rows", x, {-1, model_.width});
    x = Dense("bert.pooler.dense", x, model_.width, model_.width);
    x = layers_.Add("bert.pooler.activation", OpType::kTanh, {x});
    x = layers_.Dropout("dropout", x, model_.dropout);
    Dense("classifier", x, model_.width, model_.outputs);
    return layers_.Finish();
  }

 private:
  std::string Table(const std::string& name, int64_t rows) {
    return layers_.Parameter(name + ".weight", {rows, model_.width}, NormalInit(kBertDeviation));
  }
  std::string Dense(const std::string& name, const std::string& x, int64_t in, int64_t out) {
    return layers_.Linear(name, x, in, out, {NormalInit(kBertDeviation), ConstantInit(0.0)});
  }

  std::string Embed() {
    const std::string prefix = "bert.embeddings.";
    const std::string words = Table(prefix + "word_embeddings", model_.vocabulary);
    const std::string positions = Table(prefix + "position_embeddings", model_.context);
    const std::string types = Table(prefix + "token_type_embeddings", kTokenTypes);
    std::string x =
        layers_.Add(prefix + "word_embeddings", OpType::kGather, {words, layers_.input().name}, GatherAttributes{0});
    const std::string type = FirstRows(&layers_, prefix + "token_type_embeddings", types, kTokenTypes, 1);
    x = layers_.Add(prefix + "typed", OpType::kAdd, {x, type});
    const std::string places =
        FirstRows(&layers_, prefix + "position_embeddings", positions, model_.context, shape_.length);
    x = layers_.Add(prefix + "placed", OpType::kAdd, {x, places});
    x = layers_.Reshape(prefix + "rows", x, {-1, model_.width});
    x = layers_.LayerNorm(prefix + "LayerNorm", x, model_.width, kBertEpsilon);
    return layers_.Dropout(prefix + "dropout", x, model_.dropout);
  }

  std::string Block(const std::string& name, const std::string& x) {
    const int64_t width = model_.width;
    const std::string q = Dense(name + ".attention.self.query", x, width, width);
    const std::string k = Dense(name + ".attention.self.key", x, width, width);
    const std::string v = Dense(name + ".attention.self.value", x, width, width);
    std::string y = Attention(&layers_, name + ".attention.self", q, k, v, shape_, "", model_.dropout);
    y = Dense(name + ".attention.output.dense", y, width, width);
    y = Residual(&layers_, name + ".attention.output.residual", x, y, model_.dropout);
    const std::string middle = layers_.LayerNorm(name + ".attention.output.LayerNorm", y, width, kBertEpsilon);
    y = Dense(name + ".intermediate.dense", middle, width, 4 * width);
    y = layers_.Add(name + ".intermediate.act", OpType::kGelu, {y}, GeluAttributes{false});
    y = Dense(name + ".output.dense", y, 4 * width, width);
    y = Residual(&layers_, name + ".output.residual", middle, y, model_.dropout);
    return layers_.LayerNorm(name + ".output.LayerNorm", y, width, kBertEpsilon);
  }

  const ModelSpec& model_;
  LayerWriter layers_;
  const AttentionShape shape_;
};

}  // namespace

absl::StatusOr<Graph> BuildBert(const ModelSpec& model, const GraphInput& input) {
  LS_RETURN_IF_ERROR(CheckTransformer(model));
  LS_RETURN_IF_ERROR(CheckTokens(model, input));
  return BertWriter(model, input).Write();
}

}  // namespace lockstep
