// Nodes that draw random numbers. The job's seed, and nothing of the file, decides which.
#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/graph/onnx/dropping_layers.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"

namespace lockstep {

class OnnxImporter::Drawing : private Expansion {
 public:
  Drawing(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  // 1 with the chance that each element of `chances` is.
  absl::Status GiveBernoulli(const std::string& chances, const ValueInfo& info, int64_t to) {
    const std::string uniform = Uniform(chances, info.dtype, info.shape);
    const std::string happens = Add(OpType::kLess, {uniform, chances});
    Give(0, to == OnnxNumber(DType::kBool) ? happens : Add(OpType::kCast, {happens}, {{"to", to}}));
    return status();
  }

  // For each row of `scores` [rows, classes], `samples` classes: the first whose running sum of chances is above a
  // uniform number.
  absl::Status GiveMultinomial(const std::string& scores, const ValueInfo& info, int64_t samples, int64_t to) {
    const int64_t classes = info.shape[1];
    const std::string chances = Add(OpType::kSoftmax, {scores}, {{"axis", int64_t{1}}});
    const std::string sums = Add(OpType::kCumSum, {chances}, {{"axis", int64_t{1}}});
    const RawAttributes over_classes = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{1}}};
    const std::string total = Add(OpType::kReduceMax, {sums}, over_classes);
    const std::string uniform = Uniform(scores, info.dtype, {info.shape[0], samples});
    const std::string drawn = Add(OpType::kMul, {uniform, total});
    const std::string passed = Add(OpType::kLessOrEqual, {Unsqueeze(sums, 1), Unsqueeze(drawn, 2)});
    const std::string counted = Add(OpType::kCast, {passed}, {{"to", OnnxNumber(DType::kI64)}});
    const RawAttributes over_last = {{"axes", std::vector<int64_t>{2}}, {"keepdims", int64_t{0}}};
    const std::string count = Add(OpType::kReduceSum, {counted}, over_last);
    const std::string last = importer_->Fresh(call_.label + ".last");
    importer_->Define(last, Tensor::Of<int64_t>({}, {classes - 1}));
    const std::string index = Add(OpType::kMin, {count, last});
    Give(0, to == OnnxNumber(DType::kI64) ? index : Add(OpType::kCast, {index}, {{"to", to}}));
    return status();
  }

 private:
  std::string Uniform(const std::string& like, DType dtype, const Shape& shape) {
    return Add(OpType::kUniformLike, {like},
               {{"dtype", OnnxNumber(dtype)}, {"shape", shape}, {"stream", importer_->StreamOf(call_)}});
  }

  std::string Unsqueeze(const std::string& x, int64_t axis) {
    return Add(OpType::kUnsqueeze, {x}, {{"axes", std::vector<int64_t>{axis}}});
  }
};

int64_t OnnxImporter::StreamOf(const Call& call) { return static_cast<int64_t>(StreamOfName(call.label)); }

absl::Status OnnxImporter::CheckDraws() const {
  if (options_.trainable) return absl::OkStatus();
  return absl::UnimplementedError("draws the numbers of another generator");
}

// RandomUniform, RandomNormal, and both as ...Like.
absl::Status OnnxImporter::ReadRandom(Call& call) {
  LS_RETURN_IF_ERROR(CheckDraws());
  const std::string& type = call.node->op_type();
  const bool normal = absl::StartsWith(type, "RandomNormal");
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(normal ? OnlyAttributes(raw, {"mean", "scale", "dtype", "seed", "shape"})
                            : OnlyAttributes(raw, {"low", "high", "dtype", "seed", "shape"}));
  LS_ASSIGN_OR_RETURN(const double a, FloatOf(raw, normal ? "mean" : "low", 0));
  LS_ASSIGN_OR_RETURN(const double b, FloatOf(raw, normal ? "scale" : "high", 1));
  int64_t dtype = OnnxNumber(DType::kF32);
  std::string like;
  Shape shape;
  if (absl::EndsWith(type, "Like")) {
    if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
    LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(call.node->input(0)));
    if (IsFloating(info.dtype)) dtype = OnnxNumber(info.dtype);
    LS_ASSIGN_OR_RETURN(const Value* value, Find(call.node->input(0)));
    if (value->constant == nullptr) like = call.node->input(0);
    shape = info.shape;
  } else {
    const auto found = raw.find("shape");
    const auto* given = found == raw.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
    if (given == nullptr) return absl::InvalidArgumentError("attribute 'shape' is missing");
    shape = *given;
  }
  call.attributes = {{"a", a}, {"b", b}, {"dtype", IntOf(raw, "dtype", dtype)}, {"stream", StreamOf(call)}};
  if (like.empty()) {
    call.attributes.emplace("shape", shape);
    like = WithBatch(shape);
  }
  return Emit(call, normal ? OpType::kNormalLike : OpType::kUniformLike, {like}, {call.node->output(0)});
}

absl::Status OnnxImporter::ReadBernoulli(Call& call) {
  LS_RETURN_IF_ERROR(CheckDraws());
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"dtype", "seed"}));
  LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(call.node->input(0)));
  return Drawing(this, call).GiveBernoulli(call.node->input(0), info, IntOf(raw, "dtype", OnnxNumber(info.dtype)));
}

absl::Status OnnxImporter::ReadMultinomial(Call& call) {
  LS_RETURN_IF_ERROR(CheckDraws());
  if (call.node->input_size() != 1) return absl::InvalidArgumentError("takes one input");
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"dtype", "sample_size", "seed"}));
  LS_ASSIGN_OR_RETURN(const ValueInfo info, InfoOf(call.node->input(0)));
  if (info.shape.size() != 2 || info.shape[1] == 0 || !IsFloating(info.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat("its input is ", DTypeName(info.dtype), " ", ShapeString(info.shape),
                                                   "; it takes a row of numbers for every sample"));
  }
  const int64_t samples = IntOf(raw, "sample_size", 1);
  return Drawing(this, call)
      .GiveMultinomial(call.node->input(0), info, samples, IntOf(raw, "dtype", OnnxNumber(DType::kI32)));
}

// A value that follows the batch, where a shape begins with the batch; OpenBatch finds out whether it is that.
std::string OnnxImporter::WithBatch(const Shape& shape) const {
  if (options_.batch == 0 || shape.empty() || shape[0] != options_.batch) return "";
  for (const GraphInput& input : model_.graph.inputs) {
    const auto found = input_has_batch_.find(input.name);
    if (found != input_has_batch_.end() && found->second) return input.name;
  }
  return "";
}

void OnnxImporter::FindDrops() {
  std::set<std::string> outputs;
  for (const onnx::ValueInfoProto& output : file_.model.graph().output()) outputs.insert(output.name());
  drops_ = FindDroppingLayers(nodes_, outputs);
}

// What a dropping layer gives is read in training alone.
absl::Status OnnxImporter::DropOutputs(const onnx::NodeProto& node) {
  for (const std::string& output : node.output()) {
    const auto found = drops_.find(output);
    if (found == drops_.end() || values_.count(output) == 0) continue;
    std::optional<std::string> x;
    bool many = false;
    for (const std::string& entering : found->second) {
      LS_ASSIGN_OR_RETURN(const Value* value, Find(entering));
      if (value->constant != nullptr) continue;
      many = many || value->is_sequence || x.has_value();
      x = entering;
    }
    if (many || !x.has_value()) continue;
    LS_ASSIGN_OR_RETURN(const ValueInfo in, InfoOf(*x));
    LS_ASSIGN_OR_RETURN(const ValueInfo out, InfoOf(output));
    if (in != out || !IsFloating(out.dtype)) continue;
    const std::string name = Fresh(output + ".dropped");
    LS_ASSIGN_OR_RETURN(const std::string given, NameInGraph(*x));
    LS_ASSIGN_OR_RETURN(const std::string dropped, NameInGraph(output));
    LS_RETURN_IF_ERROR(AppendNode(
        &model_.graph, {name, OpType::kDropout, {given, dropped}, {name}, DropoutAttributes{.training_mode = true}}));
    values_[output] = {nullptr, nullptr, name, {}, false};
  }
  return absl::OkStatus();
}

}  // namespace lockstep
