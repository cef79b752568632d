#include "common/graph/serialize.h"

#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/proto_json.h"
#include "common/digest/sha256.h"
#include "common/graph/ops/schema.h"
#include "common/graph/serialize_update.h"
#include "common/graph/validate.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "protos/metagraph.pb.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = (size_t{1} << 31) - 1;

absl::Status InvalidMetagraph(const std::string& message) {
  return absl::InvalidArgumentError(absl::StrCat("metagraph: ", message));
}

template <typename Message>
void WriteSpec(DType dtype, const Shape& shape, Message* message) {
  message->set_dtype(std::string(DTypeName(dtype)));
  message->mutable_shape()->Assign(shape.begin(), shape.end());
}

template <typename Message>
absl::Status ReadSpec(const Message& message, DType* dtype, Shape* shape) {
  const std::optional<DType> parsed = ParseDType(message.dtype());
  if (!parsed.has_value()) return InvalidMetagraph(absl::StrCat("'", message.name(), "' has no known element type"));
  *dtype = *parsed;
  shape->assign(message.shape().begin(), message.shape().end());
  return absl::OkStatus();
}

void WriteAttribute(const std::string& name, const RawAttribute& value, proto::Attribute* message) {
  message->set_name(name);
  if (const auto* i = std::get_if<int64_t>(&value)) message->set_i(*i);
  if (const auto* f = std::get_if<double>(&value)) message->set_f(*f);
  if (const auto* s = std::get_if<std::string>(&value)) message->set_s(*s);
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&value)) {
    message->mutable_ints()->mutable_values()->Assign(ints->begin(), ints->end());
  }
  if (const auto* floats = std::get_if<std::vector<double>>(&value)) {
    message->mutable_floats()->mutable_values()->Assign(floats->begin(), floats->end());
  }
}

absl::StatusOr<RawAttribute> ReadAttribute(const proto::Attribute& message) {
  switch (message.value_case()) {
    case proto::Attribute::kI:
      return RawAttribute(message.i());
    case proto::Attribute::kF:
      return RawAttribute(message.f());
    case proto::Attribute::kInts:
      return RawAttribute(std::vector<int64_t>(message.ints().values().begin(), message.ints().values().end()));
    case proto::Attribute::kS:
      return RawAttribute(message.s());
    case proto::Attribute::kFloats:
      return RawAttribute(std::vector<double>(message.floats().values().begin(), message.floats().values().end()));
    case proto::Attribute::VALUE_NOT_SET:
      break;
  }
  return InvalidMetagraph(absl::StrCat("attribute '", message.name(), "' has no value"));
}

void WriteNode(const Node& node, proto::Node* message) {
  message->set_name(node.name);
  message->set_domain(std::string(OpDomain(node.op)));
  message->set_op(std::string(OpName(node.op)));
  message->mutable_inputs()->Assign(node.inputs.begin(), node.inputs.end());
  message->mutable_outputs()->Assign(node.outputs.begin(), node.outputs.end());
  for (const auto& [name, value] : SchemaOf(node.op).format(node.attributes)) {
    WriteAttribute(name, value, message->add_attributes());
  }
}

absl::StatusOr<Node> ReadNode(const proto::Node& message) {
  const std::optional<OpType> op = FindOp(message.domain(), message.op());
  if (!op.has_value()) {
    return InvalidMetagraph(absl::StrCat("node '", message.name(), "' uses op '", message.domain(),
                                         message.domain().empty() ? "" : ".", message.op(),
                                         "', which this program does not have"));
  }
  RawAttributes raw;
  for (const proto::Attribute& attribute : message.attributes()) {
    LS_ASSIGN_OR_RETURN(RawAttribute value, ReadAttribute(attribute));
    if (!raw.emplace(attribute.name(), std::move(value)).second) {
      return InvalidMetagraph(absl::StrCat("node '", message.name(), "' has attribute '", attribute.name(), "' twice"));
    }
  }
  Node node;
  node.name = message.name();
  node.op = *op;
  node.inputs.assign(message.inputs().begin(), message.inputs().end());
  node.outputs.assign(message.outputs().begin(), message.outputs().end());
  LS_ASSIGN_OR_RETURN(node.attributes, ParseAttributes(*op, node.name, raw));
  return node;
}

void WriteVariable(const Variable& variable, proto::Variable* message) {
  message->set_name(variable.name);
  WriteSpec(variable.dtype, variable.shape, message);
  // Enumerations list the kinds in the order of the proto's, which stand behind "unspecified".
  message->set_kind(static_cast<proto::Variable::Kind>(static_cast<int>(variable.kind) + 1));
  proto::Init* init = message->mutable_init();
  init->set_kind(static_cast<proto::Init::Kind>(static_cast<int>(variable.init.kind) + 1));
  init->set_value(variable.init.value);
  init->set_fan_in(variable.init.fan_in);
  init->set_file_sha256(variable.init.file_sha256);
  init->set_file_tensor(variable.init.file_tensor);
}

absl::StatusOr<Variable> ReadVariable(const proto::Variable& message) {
  Variable variable;
  variable.name = message.name();
  LS_RETURN_IF_ERROR(ReadSpec(message, &variable.dtype, &variable.shape));
  if (message.kind() < proto::Variable::PARAMETER || message.kind() > proto::Variable::FROZEN) {
    return InvalidMetagraph(absl::StrCat("variable '", message.name(), "' is of no known kind"));
  }
  variable.kind = static_cast<VariableKind>(message.kind() - 1);
  const proto::Init& init = message.init();
  if (init.kind() < proto::Init::CONSTANT || init.kind() > proto::Init::NORMAL) {
    return InvalidMetagraph(absl::StrCat("variable '", message.name(), "' begins in no known way"));
  }
  variable.init = {static_cast<InitRule::Kind>(init.kind() - 1), init.value(), init.fan_in(), init.file_sha256(),
                   init.file_tensor()};
  return variable;
}

absl::StatusOr<Constant> ReadConstant(const proto::Constant& message) {
  DType dtype = DType::kF32;
  Shape shape;
  LS_RETURN_IF_ERROR(ReadSpec(message, &dtype, &shape));
  LS_ASSIGN_OR_RETURN(const int64_t bytes, CheckedByteSize(dtype, shape));
  if (bytes != static_cast<int64_t>(message.data().size())) {
    return InvalidMetagraph(
        absl::StrCat("constant '", message.name(), "' has ", message.data().size(), " bytes, expected ", bytes));
  }
  LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, std::move(shape)));
  if (bytes != 0) std::memcpy(tensor.data(), message.data().data(), message.data().size());
  return Constant{message.name(), std::make_shared<const Tensor>(std::move(tensor))};
}

void WriteGraph(const Graph& graph, proto::Graph* message) {
  for (const GraphInput& input : graph.inputs) {
    proto::GraphInput* to = message->add_inputs();
    to->set_name(input.name);
    WriteSpec(input.dtype, input.shape, to);
  }
  for (const Variable& variable : graph.variables) WriteVariable(variable, message->add_variables());
  for (const Constant& constant : graph.constants) {
    proto::Constant* to = message->add_constants();
    to->set_name(constant.name);
    WriteSpec(constant.value->dtype(), constant.value->shape(), to);
    const absl::Span<const std::byte> bytes = constant.value->bytes();
    to->set_data(bytes.data(), bytes.size());
  }
  for (const Node& node : graph.nodes) WriteNode(node, message->add_nodes());
  message->mutable_outputs()->Assign(graph.outputs.begin(), graph.outputs.end());
}

absl::StatusOr<Graph> ReadGraph(const proto::Graph& message) {
  Graph graph;
  for (const proto::GraphInput& input : message.inputs()) {
    GraphInput to;
    to.name = input.name();
    LS_RETURN_IF_ERROR(ReadSpec(input, &to.dtype, &to.shape));
    graph.inputs.push_back(std::move(to));
  }
  for (const proto::Variable& variable : message.variables()) {
    LS_ASSIGN_OR_RETURN(Variable to, ReadVariable(variable));
    graph.variables.push_back(std::move(to));
  }
  for (const proto::Constant& constant : message.constants()) {
    LS_ASSIGN_OR_RETURN(Constant to, ReadConstant(constant));
    graph.constants.push_back(std::move(to));
  }
  for (const proto::Node& node : message.nodes()) {
    LS_ASSIGN_OR_RETURN(Node to, ReadNode(node));
    graph.nodes.push_back(std::move(to));
  }
  graph.outputs.assign(message.outputs().begin(), message.outputs().end());
  return graph;
}

void WriteSignature(const SignatureInput& input, proto::SignatureInput* message) {
  message->set_name(input.name);
  message->set_field(input.field);
  message->set_role(input.role == InputRole::kFeature ? proto::SignatureInput::FEATURE : proto::SignatureInput::LABEL);
  WriteSpec(input.dtype, input.shape, message);
  message->set_scale(input.normalisation.scale);
  message->mutable_mean()->Assign(input.normalisation.mean.begin(), input.normalisation.mean.end());
  message->mutable_std()->Assign(input.normalisation.std.begin(), input.normalisation.std.end());
}

absl::StatusOr<SignatureInput> ReadSignature(const proto::SignatureInput& message) {
  SignatureInput input;
  input.name = message.name();
  input.field = message.field();
  if (message.role() != proto::SignatureInput::FEATURE && message.role() != proto::SignatureInput::LABEL) {
    return InvalidMetagraph(absl::StrCat("input '", message.name(), "' has no known role"));
  }
  input.role = message.role() == proto::SignatureInput::FEATURE ? InputRole::kFeature : InputRole::kLabel;
  LS_RETURN_IF_ERROR(ReadSpec(message, &input.dtype, &input.shape));
  input.normalisation.scale = message.scale();
  input.normalisation.mean.assign(message.mean().begin(), message.mean().end());
  input.normalisation.std.assign(message.std().begin(), message.std().end());
  return input;
}

proto::MetaGraph ToProto(const MetaGraph& metagraph) {
  proto::MetaGraph message;
  message.set_version(metagraph.version);
  WriteGraph(metagraph.forward, message.mutable_forward());
  for (const SignatureInput& input : metagraph.signature) WriteSignature(input, message.add_signature());
  WriteLoss(metagraph.loss, message.mutable_loss());
  WriteUpdate(metagraph.update, message.mutable_update());
  message.set_pass_batch(metagraph.pass_batch);
  for (const StateAlias& alias : metagraph.aliases) {
    proto::Alias* to = message.add_aliases();
    to->set_name(alias.name);
    to->set_of(alias.of);
  }
  message.set_precision(metagraph.precision == Precision::kBf16 ? proto::MetaGraph::BF16 : proto::MetaGraph::FLOAT32);
  return message;
}

absl::StatusOr<MetaGraph> FromProto(const proto::MetaGraph& message) {
  MetaGraph metagraph;
  metagraph.version = message.version();
  LS_ASSIGN_OR_RETURN(metagraph.forward, ReadGraph(message.forward()));
  for (const proto::SignatureInput& input : message.signature()) {
    LS_ASSIGN_OR_RETURN(SignatureInput to, ReadSignature(input));
    metagraph.signature.push_back(std::move(to));
  }
  LS_ASSIGN_OR_RETURN(metagraph.loss, ReadLoss(message.loss()));
  LS_ASSIGN_OR_RETURN(metagraph.update, ReadUpdate(message.update()));
  metagraph.pass_batch = message.pass_batch();
  for (const proto::Alias& alias : message.aliases()) metagraph.aliases.push_back({alias.name(), alias.of()});
  metagraph.precision = message.precision() == proto::MetaGraph::BF16 ? Precision::kBf16 : Precision::kFloat32;
  return metagraph;
}

absl::Status TooLarge(size_t bytes, size_t constants) {
  return InvalidMetagraph(
      absl::StrCat("the metagraph has ", bytes, " bytes, ", constants, " of them constants of the model, and at most ",
                   kMostBytes, " can be stored; export the large ones as parameters or buffers, which are state"));
}

std::string Bytes(const proto::MetaGraph& message) {
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    LS_CHECK(message.SerializeToCodedStream(&coded), "writing to memory succeeds");
  }
  return bytes;
}

}  // namespace

absl::StatusOr<std::string> SerializeMetaGraph(const MetaGraph& metagraph) {
  size_t constants = 0;
  for (const Constant& constant : metagraph.forward.constants) constants += constant.value->bytes().size();
  if (constants > kMostBytes) return TooLarge(constants, constants);  // before they are copied
  const proto::MetaGraph message = ToProto(metagraph);
  if (message.ByteSizeLong() > kMostBytes) return TooLarge(message.ByteSizeLong(), constants);
  return Bytes(message);
}

absl::StatusOr<MetaGraph> ParseMetaGraph(absl::string_view bytes) {
  proto::MetaGraph message;
  if (bytes.size() > kMostBytes || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidMetagraph(absl::StrCat("these ", bytes.size(), " bytes are no metagraph, or one that was cut short"));
  }
  LS_ASSIGN_OR_RETURN(MetaGraph metagraph, FromProto(message));
  LS_RETURN_IF_ERROR(ValidateMetaGraph(metagraph));
  LS_ASSIGN_OR_RETURN(const std::string canonical, SerializeMetaGraph(metagraph));
  if (canonical != bytes) {
    return InvalidMetagraph(
        "it holds fields that this program does not know, or it was written by other means; use the program that wrote "
        "it");
  }
  return metagraph;
}

absl::StatusOr<std::string> Fingerprint(const MetaGraph& metagraph) {
  LS_ASSIGN_OR_RETURN(const std::string bytes, SerializeMetaGraph(metagraph));
  return Sha256Hex(bytes);
}

std::string MetaGraphToJson(const MetaGraph& metagraph) { return ToSparseJson(ToProto(metagraph)); }

}  // namespace lockstep
