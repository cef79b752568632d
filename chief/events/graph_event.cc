#include "chief/events/graph_event.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/events/event_record.h"
#include "chief/events/markdown.h"
#include "chief/events/module_paths.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/graph/graph_editor.h"
#include "common/graph/ops/schema.h"
#include "common/graph/serialize_update.h"
#include "common/status/check.h"
#include "common/tensor/tensor.h"
#include "protos/metagraph.pb.h"

namespace lockstep::chief {
namespace {

constexpr char kShapes[] = "_output_shapes";  // what the graph tab writes at edges
constexpr size_t kShownInputs = 8;

std::string OpOf(OpType type) {
  return OpDomain(type).empty() ? std::string(OpName(type)) : absl::StrCat(OpDomain(type), ".", OpName(type));
}

const char* OpOf(VariableKind kind) {
  switch (kind) {
    case VariableKind::kParameter:
      return "Parameter";
    case VariableKind::kStatistic:
      return "Statistic";
    case VariableKind::kFrozen:
      return "Frozen";
  }
  LS_CHECK(false, "every kind of variable is named above");
}

tensorboard::AttrValue ValueOf(const RawAttribute& raw) {
  tensorboard::AttrValue value;
  if (const auto* i = std::get_if<int64_t>(&raw)) value.set_i(*i);
  if (const auto* f = std::get_if<double>(&raw)) value.set_f(static_cast<float>(*f));
  if (const auto* s = std::get_if<std::string>(&raw)) value.set_s(*s);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&raw)) {
    value.mutable_list()->mutable_i()->Assign(ints->begin(), ints->end());
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&raw)) {
    value.mutable_list()->mutable_f()->Assign(floats->begin(), floats->end());
  }
  return value;
}

class GraphWriter {
 public:
  // `graph` is not owned; its shapes are inferred, or its values unknown.
  explicit GraphWriter(const Graph& graph) : graph_(graph) {}

  tensorboard::NodeDef& Add(const std::string& path, const std::string& op) {
    std::string name = path;
    for (int i = 1; !taken_.insert(name).second; ++i) name = absl::StrCat(path, "_", i);
    tensorboard::NodeDef& node = *to_.add_node();
    node.set_name(name);
    node.set_op(op);
    return node;
  }

  void AddSource(const std::string& value, const std::string& path, const std::string& op) {
    AddOutputs({value}, Add(path, op));
  }

  void AddNode(const Node& from, const std::string& path) {
    tensorboard::NodeDef& node = Add(path, OpOf(from.op));
    AddInputs(from.inputs, node);
    AddOutputs(from.outputs, node);
    for (const auto& [name, value] : SchemaOf(from.op).format(from.attributes)) {
      (*node.mutable_attr())[name] = ValueOf(value);
    }
  }

  void AddInputs(const std::vector<std::string>& values, tensorboard::NodeDef& node) const {
    for (const std::string& value : values) {
      if (const auto from = sources_.find(value); from != sources_.end()) node.add_input(from->second);
    }
  }

  tensorboard::GraphDef Finish() { return std::move(to_); }

 private:
  void AddOutputs(const std::vector<std::string>& values, tensorboard::NodeDef& node) {
    for (size_t k = 0; k < values.size(); ++k) {
      if (values[k].empty()) continue;  // nobody asked for it
      sources_[values[k]] = k == 0 ? node.name() : absl::StrCat(node.name(), ":", k);
      const auto info = graph_.values.find(values[k]);
      if (info == graph_.values.end()) continue;
      tensorboard::TensorShape& shape = *(*node.mutable_attr())[kShapes].mutable_list()->add_shape();
      for (const int64_t size : info->second.shape) shape.add_dim()->set_size(size);
    }
  }

  const Graph& graph_;
  tensorboard::GraphDef to_;
  std::set<std::string> taken_;
  std::map<std::string, std::string> sources_;  // by value: how a node's input names it
};

// One row of a table.
std::string Row(absl::string_view what, absl::string_view text) {
  return absl::StrCat("| ", MarkdownLine(what), " | ", MarkdownLine(text), " |\n");
}

std::string CodeBlock(absl::string_view what, const google::protobuf::Message& message) {
  return absl::StrCat("\n", what, "\n\n```\n", ToSparseJson(message), "\n```\n");
}

std::string Describe(const MetaGraph& metagraph, absl::string_view fingerprint,
                     const std::vector<AccountLine>& account) {
  std::string text = "| metagraph | |\n|---|---|\n";
  text += Row("fingerprint", fingerprint);
  std::vector<std::string> inputs;
  for (const SignatureInput& input : metagraph.signature) {
    if (inputs.size() == kShownInputs) break;
    inputs.push_back(absl::StrCat(input.name, " ", DTypeName(input.dtype), ShapeString(input.shape)));
  }
  text += Row("inputs", absl::StrJoin(inputs, ", "));
  text += Row("nodes", absl::StrCat(metagraph.forward.nodes.size()));
  text += Row("samples of a pass", absl::StrCat(metagraph.pass_batch));
  text += Row("precision", metagraph.precision == Precision::kBf16 ? "bf16" : "float32");
  for (const AccountLine& line : account) text += Row(line.what, line.text);
  proto::Loss loss;
  WriteLoss(metagraph.loss, &loss);
  proto::Update update;
  WriteUpdate(metagraph.update, &update);
  return absl::StrCat(text, CodeBlock("loss", loss), CodeBlock("update", update));
}

std::string LossOp(LossKind kind) {
  LossRule rule;
  rule.kind = kind;
  proto::Loss loss;
  WriteLoss(rule, &loss);
  return proto::Loss::Kind_Name(loss.kind());
}

}  // namespace

tensorboard::GraphDef MakeGraphDef(const MetaGraph& metagraph) {
  Graph graph = metagraph.forward;
  BindBatch(&graph, metagraph.pass_batch);
  if (!InferShapes(&graph).ok()) graph.values.clear();  // shown without shapes
  GraphWriter writer(graph);
  const ModulePaths paths = FindModulePaths(graph);
  for (const GraphInput& input : graph.inputs) writer.AddSource(input.name, ModulePath(input.name), "Placeholder");
  for (const Variable& variable : graph.variables) {
    writer.AddSource(variable.name, ModulePath(variable.name), OpOf(variable.kind));
  }
  for (size_t i = 0; i < graph.constants.size(); ++i) {
    writer.AddSource(graph.constants[i].name, paths.constants[i], "Const");
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) writer.AddNode(graph.nodes[i], paths.nodes[i]);
  const LossRule& loss = metagraph.loss;
  if (loss.kind != LossKind::kGraphOutput) {
    writer.AddInputs({loss.output, loss.label}, writer.Add("loss", LossOp(loss.kind)));
  }
  tensorboard::GraphDef def = writer.Finish();
  def.mutable_versions()->set_producer(1);
  return def;
}

std::string GraphRecords(absl::Time now, const MetaGraph& metagraph, absl::string_view fingerprint,
                         const std::vector<AccountLine>& account) {
  tensorboard::Event graph = EventAt(now, 0);
  graph.set_graph_def(MakeGraphDef(metagraph).SerializeAsString());
  tensorboard::MetaGraphDef def;
  def.mutable_meta_info_def()->set_meta_graph_version(std::string(fingerprint));
  tensorboard::Event named = EventAt(now, 0);
  named.set_meta_graph_def(def.SerializeAsString());
  return absl::StrCat(EncodeEventRecord(graph.SerializeAsString()), EncodeEventRecord(named.SerializeAsString()),
                      TextRecord(now, 0, absl::StrCat("metagraph/", fingerprint.substr(0, 12)),
                                 Describe(metagraph, fingerprint, account)));
}

}  // namespace lockstep::chief
