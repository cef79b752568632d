// ONNX's Attention, which exporters write from opset 23 on, as the products and the softmax that it stands for.
//
//   scores = Q K^T * scale, capped by softcap * tanh(scores / softcap)
//   + a mask of numbers, or only where a mask of bools and the positions allow: causal, within a window
//   Y = Softmax(scores) V; 0 for a query that may look at no key
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

enum AttentionInput : size_t { kQuery, kKey, kValue, kMask, kPastKey, kPastValue, kLengths };
enum AttentionOutput : int { kY, kPresentKey, kPresentValue, kScores };
// What the output of scores holds.
enum ScoresAt : int64_t { kRaw, kCapped, kMasked, kWeights };

constexpr double kNever = -std::numeric_limits<double>::infinity();

}  // namespace

class OnnxImporter::Attention : private Expansion {
 public:
  Attention(OnnxImporter* importer, const Call& call) : Expansion(importer, call), inputs_(InputsOf(*call.node)) {}

  absl::Status Read() {
    LS_ASSIGN_OR_RETURN(raw_, importer_->ReadAttributes(*call_.node));
    LS_RETURN_IF_ERROR(Check());
    LS_ASSIGN_OR_RETURN(const std::string q, Heads(inputs_[kQuery], "q_num_heads"));
    LS_ASSIGN_OR_RETURN(std::string k, Heads(inputs_[kKey], "kv_num_heads"));
    LS_ASSIGN_OR_RETURN(std::string v, Heads(inputs_[kValue], "kv_num_heads"));
    LS_RETURN_IF_ERROR(Continue(kPastKey, kPresentKey, &k));
    LS_RETURN_IF_ERROR(Continue(kPastValue, kPresentValue, &v));
    LS_ASSIGN_OR_RETURN(query_, importer_->InfoOf(q));
    LS_ASSIGN_OR_RETURN(k, Repeat(k, query_.shape[1]));
    LS_ASSIGN_OR_RETURN(v, Repeat(v, query_.shape[1]));
    LS_ASSIGN_OR_RETURN(const ValueInfo key, importer_->InfoOf(k));
    keys_ = key.shape[2];
    LS_ASSIGN_OR_RETURN(std::string scores, Scores(q, k));
    LS_RETURN_IF_ERROR(Mask(&scores));
    std::string weights = Softmax(scores);
    std::string y = Add(OpType::kBatchMatMul, {weights, v});
    LS_RETURN_IF_ERROR(ZeroBlind(&y));
    if (GivesScores(kWeights)) {
      LS_RETURN_IF_ERROR(ZeroBlind(&weights));
      Expansion::Give(kScores, weights);
    }
    if (flat_) {
      LS_RETURN_IF_ERROR(status());
      LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(y));
      y = Add(OpType::kTranspose, {y}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
      y = Reshape(y, {info.shape[0], info.shape[2], info.shape[1] * info.shape[3]});
    }
    Expansion::Give(kY, y);
    return status();
  }

 private:
  bool Has(size_t input) const { return input < inputs_.size() && !inputs_[input].empty(); }
  bool Gives(int output) const { return call_.node->output_size() > output && !call_.node->output(output).empty(); }
  bool GivesScores(ScoresAt at) const { return Gives(kScores) && IntOf(raw_, "qk_matmul_output_mode", kRaw) == at; }

  absl::Status Check() const {
    LS_RETURN_IF_ERROR(
        OnlyAttributes(raw_, {"is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
                              "right_window_size", "scale", "softcap", "softmax_precision"}));
    if (!Has(kQuery) || !Has(kKey) || !Has(kValue)) {
      return absl::InvalidArgumentError("takes queries, keys and values");
    }
    if (Has(kPastKey) != Has(kPastValue)) return absl::InvalidArgumentError("takes past keys and past values together");
    const int64_t precision = IntOf(raw_, "softmax_precision", OnnxNumber(DType::kF32));
    if (precision != OnnxNumber(DType::kF32) && precision != OnnxNumber(DType::kF64)) {
      return absl::UnimplementedError("rounds its softmax to 16 bits (softmax_precision)");
    }
    return absl::OkStatus();
  }

  // As [batch, heads, length, size], from that or from [batch, length, heads * size].
  absl::StatusOr<std::string> Heads(const std::string& x, const char* count) {
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(x));
    if (info.shape.size() == 4) return x;
    const int64_t heads = IntOf(raw_, count, 0);
    if (info.shape.size() != 3 || heads < 1 || info.shape[2] % heads != 0) {
      return absl::InvalidArgumentError(absl::StrCat("an operand of shape ", ShapeString(info.shape), " does not have ",
                                                     heads, " heads (", count, ")"));
    }
    flat_ = true;
    const std::string split = Reshape(x, {info.shape[0], info.shape[1], heads, info.shape[2] / heads});
    const std::string heads_first = Add(OpType::kTranspose, {split}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
    LS_RETURN_IF_ERROR(status());
    return heads_first;
  }

  // Keys or values behind those of the past.
  absl::Status Continue(AttentionInput past, AttentionOutput present, std::string* x) {
    if (Has(past)) {
      LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(inputs_[past]));
      if (info.shape.size() != 4) return absl::InvalidArgumentError("has a past that is not divided into heads");
      past_ = info.shape[2];
      *x = Add(OpType::kConcat, {inputs_[past], *x}, {{"axis", int64_t{2}}});
      LS_RETURN_IF_ERROR(status());
    }
    if (Gives(present)) Expansion::Give(present, *x);
    return absl::OkStatus();
  }

  // Each head of keys and values for the queries that share it.
  absl::StatusOr<std::string> Repeat(const std::string& x, int64_t heads) {
    LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(x));
    const Shape& shape = info.shape;
    if (shape[1] == heads) return x;
    if (shape[1] < 1 || heads % shape[1] != 0) {
      return absl::InvalidArgumentError(absl::StrCat(heads, " heads of queries share ", shape[1], " of keys"));
    }
    const std::string apart = Reshape(x, {shape[0], shape[1], 1, shape[2], shape[3]});
    const std::string wide =
        Add(OpType::kExpand, {apart}, {{"shape", Shape{shape[0], shape[1], heads / shape[1], shape[2], shape[3]}}});
    const std::string repeated = Reshape(wide, {shape[0], heads, shape[2], shape[3]});
    LS_RETURN_IF_ERROR(status());
    return repeated;
  }

  absl::StatusOr<std::string> Scores(const std::string& q, const std::string& k) {
    LS_ASSIGN_OR_RETURN(const double scale,
                        FloatOf(raw_, "scale", 1.0 / std::sqrt(static_cast<double>(query_.shape[3]))));
    LS_ASSIGN_OR_RETURN(const double cap, FloatOf(raw_, "softcap", 0));
    std::string scores = Add(OpType::kBatchMatMul, {q, k}, {{"transB", int64_t{1}}});
    scores = Add(OpType::kScale, {scores}, {{"factor", scale}});
    if (GivesScores(kRaw)) Expansion::Give(kScores, scores);
    if (cap != 0) {
      scores = Add(OpType::kScale, {scores}, {{"factor", 1.0 / cap}});
      scores = Add(OpType::kTanh, {scores});
      scores = Add(OpType::kScale, {scores}, {{"factor", cap}});
    }
    if (GivesScores(kCapped)) Expansion::Give(kScores, scores);
    return scores;
  }

  // Masks of numbers are added; bools, and positions beside bools, choose.
  absl::Status Mask(std::string* scores) {
    LS_ASSIGN_OR_RETURN(std::string allowed, Positions());
    std::string masked = *scores;
    if (Has(kMask)) {
      LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(inputs_[kMask]));
      LS_ASSIGN_OR_RETURN(const std::string whole, Lengthened(inputs_[kMask], info));
      if (info.dtype == DType::kBool) {
        allowed = Both(allowed, whole);
      } else {
        masked = Add(OpType::kAdd, {masked, whole});
        if (whole != inputs_[kMask]) {
          LS_ASSIGN_OR_RETURN(const std::string places, Distances(1));
          allowed = Both(allowed, Add(OpType::kLess, {places, Whole(info.shape.back())}));
        }
      }
    }
    if (!allowed.empty()) {
      LS_ASSIGN_OR_RETURN(masked, Choose(masked, allowed));
    }
    *scores = masked;
    if (GivesScores(kMasked)) Expansion::Give(kScores, allowed.empty() ? masked : Where(allowed, masked, kNever));
    return status();
  }

  // Scores where it is allowed. A query that may look at no key looks at all of them here, so that nothing is NaN, and
  // gives 0 in the end.
  absl::StatusOr<std::string> Choose(const std::string& scores, const std::string& allowed) {
    const std::string counted = Add(OpType::kCast, {allowed}, {{"to", OnnxNumber(DType::kI32)}});
    const RawAttributes over_keys = {{"axes", std::vector<int64_t>{-1}}, {"keepdims", int64_t{1}}};
    const std::string any = Add(OpType::kReduceMax, {counted}, over_keys);
    const std::string sees = Add(OpType::kCast, {any}, {{"to", OnnxNumber(DType::kBool)}});
    LS_RETURN_IF_ERROR(status());
    LS_ASSIGN_OR_RETURN(const Tensor* known, importer_->KnownElements(sees));
    const auto all = [](absl::Span<const bool> values) {
      return std::all_of(values.begin(), values.end(), [](bool value) { return value; });
    };
    if (known != nullptr && all(known->elements<bool>())) {
      LS_ASSIGN_OR_RETURN(const Tensor* mask, importer_->KnownElements(allowed));
      return mask != nullptr ? AddNever(scores, *mask) : Where(allowed, scores, kNever);
    }
    sees_ = sees;
    const std::string blind = Add(OpType::kNot, {sees});
    return Where(Add(OpType::kOr, {allowed, blind}), scores, kNever);
  }

  // A mask that is known is added: a pass that looks for attention knows that form.
  absl::StatusOr<std::string> AddNever(const std::string& scores, const Tensor& allowed) {
    const absl::Span<const bool> may = allowed.elements<bool>();
    if (std::all_of(may.begin(), may.end(), [](bool value) { return value; })) return scores;
    LS_ASSIGN_OR_RETURN(Tensor added, importer_->NewConstant(query_.dtype, allowed.shape()));
    for (size_t i = 0; i < may.size(); ++i) {
      if (!may[i] && query_.dtype == DType::kF64) added.elements<double>()[i] = kNever;
      if (!may[i] && query_.dtype == DType::kF32) added.elements<float>()[i] = static_cast<float>(kNever);
    }
    const std::string name = importer_->Fresh(call_.label + ".mask");
    importer_->Define(name, std::move(added));
    return Add(OpType::kAdd, {scores, name});
  }

  std::string Where(const std::string& condition, const std::string& x, double otherwise) {
    const std::string name = importer_->Fresh(call_.label + ".else");
    importer_->Define(name, query_.dtype == DType::kF64 ? Tensor::Of<double>({}, {otherwise})
                                                        : Tensor::Of<float>({}, {static_cast<float>(otherwise)}));
    return Add(OpType::kWhere, {condition, x, name});
  }

  absl::Status ZeroBlind(std::string* y) {
    if (!sees_.empty()) *y = Where(sees_, *y, 0);
    return status();
  }

  // Which key each query may look at by their places, as bools [queries, keys] or [batch, 1, queries, keys]; empty
  // where all are. Query i stands at i + offset among the keys: behind those of the past, or so that the last one
  // stands at the end of a sequence whose length is given.
  absl::StatusOr<std::string> Positions() {
    const int64_t left = IntOf(raw_, "left_window_size", -1);
    int64_t right = IntOf(raw_, "right_window_size", -1);
    if (IntOf(raw_, "is_causal", 0) != 0) right = 0;
    std::string offset = Whole(past_);
    std::string allowed;
    if (Has(kLengths)) {
      LS_ASSIGN_OR_RETURN(const ValueInfo info, importer_->InfoOf(inputs_[kLengths]));
      const std::string given = Reshape(inputs_[kLengths], {NumElements(info.shape), 1, 1, 1});
      const std::string lengths = Add(OpType::kCast, {given}, {{"to", OnnxNumber(DType::kI32)}});
      LS_ASSIGN_OR_RETURN(const std::string places, Distances(1));
      allowed = Add(OpType::kLess, {places, lengths});
      offset = Add(OpType::kSub, {lengths, Whole(query_.shape[2])});
    }
    if (left < 0 && right < 0) return allowed;
    LS_ASSIGN_OR_RETURN(const std::string distances, Distances(query_.shape[2]));
    if (right >= 0) {
      const std::string last = Add(OpType::kAdd, {offset, Whole(right)});
      allowed = Both(allowed, Add(OpType::kLessOrEqual, {distances, last}));
    }
    if (left >= 0) {
      const std::string first = Add(OpType::kSub, {offset, Whole(left)});
      allowed = Both(allowed, Add(OpType::kGreaterOrEqual, {distances, first}));
    }
    LS_RETURN_IF_ERROR(status());
    return allowed;
  }

  std::string Both(const std::string& a, const std::string& b) { return a.empty() ? b : Add(OpType::kAnd, {a, b}); }

  std::string Whole(int64_t number) {
    const std::string name = importer_->Fresh(call_.label + ".number");
    importer_->Define(name, Tensor::Of<int32_t>({}, {static_cast<int32_t>(number)}));
    return name;
  }

  // Key less query, [queries, keys].
  absl::StatusOr<std::string> Distances(int64_t queries) {
    LS_ASSIGN_OR_RETURN(Tensor distances, importer_->NewConstant(DType::kI32, {queries, keys_}));
    for (int64_t i = 0; i < queries * keys_; ++i) {
      distances.elements<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(i % keys_ - i / keys_);
    }
    const std::string name = importer_->Fresh(call_.label + ".distances");
    importer_->Define(name, std::move(distances));
    return name;
  }

  // A mask that ends before the keys do, with zeros for the rest, which it forbids.
  absl::StatusOr<std::string> Lengthened(const std::string& mask, const ValueInfo& info) {
    if (info.shape.empty() || info.shape.back() == 1 || info.shape.back() >= keys_) return mask;
    Shape missing = info.shape;
    missing.back() = keys_ - info.shape.back();
    LS_ASSIGN_OR_RETURN(Tensor rest, importer_->NewConstant(info.dtype, missing));
    const std::string name = importer_->Fresh(call_.label + ".rest");
    importer_->Define(name, std::move(rest));
    return Add(OpType::kConcat, {mask, name}, {{"axis", static_cast<int64_t>(missing.size()) - 1}});
  }

  std::string Softmax(const std::string& scores) {
    const int64_t own = OnnxNumber(query_.dtype);
    const int64_t precision = std::max(own, IntOf(raw_, "softmax_precision", own));
    const std::string wide = precision == own ? scores : Add(OpType::kCast, {scores}, {{"to", precision}});
    const std::string weights = Add(OpType::kSoftmax, {wide}, {{"axis", int64_t{-1}}});
    return precision == own ? weights : Add(OpType::kCast, {weights}, {{"to", own}});
  }

  const std::vector<std::string> inputs_;
  RawAttributes raw_;
  ValueInfo query_;    // [batch, heads, queries, size]
  int64_t past_ = 0;   // keys before those of this call
  int64_t keys_ = 0;   // all of them
  bool flat_ = false;  // [batch, length, heads * size]
  std::string sees_;   // queries that see any key; empty where all do
};

absl::Status OnnxImporter::ReadAttention(Call& call) { return Attention(this, call).Read(); }

}  // namespace lockstep
