// Recurrent layers as the nodes that ONNX defines them by, step after step: their gradients, kernels and element types
// are those of the ops that they consist of. Inputs are projected for all steps in one product; what remains per step
// is a product with the state before and the gates.
#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Inputs of the ONNX ops.
enum CellInput { kX, kW, kR, kB, kLengths, kInitialH, kInitialC, kPeepholes, kInputs };

struct CellKind {
  int64_t gates = 0;
  std::vector<std::string> activations;  // by default
};

const std::map<std::string, CellKind>& Cells() {
  static const auto* const kCells = new std::map<std::string, CellKind>({
      {"RNN", {1, {"Tanh"}}},
      {"GRU", {3, {"Sigmoid", "Tanh"}}},
      {"LSTM", {4, {"Sigmoid", "Tanh", "Tanh"}}},
  });
  return *kCells;
}

}  // namespace

class OnnxImporter::Recurrent : private Expansion {
 public:
  Recurrent(OnnxImporter* importer, const Call& call)
      : Expansion(importer, call), type_(call.node->op_type()), gates_(Cells().at(type_).gates) {}

  absl::Status Read() {
    LS_RETURN_IF_ERROR(ReadAttributes());
    LS_RETURN_IF_ERROR(ReadInputs());
    LS_RETURN_IF_ERROR(DefineZeros());
    std::vector<std::string> all, last_h, last_c;
    for (int64_t d = 0; d < directions_; ++d) {
      const bool backward = direction_ == "reverse" || d == 1;
      State state = Begin(d);
      const std::vector<std::string> projected = Project(d);
      std::vector<std::string> outputs(static_cast<size_t>(steps_));
      for (int64_t i = 0; i < steps_; ++i) {
        const int64_t t = backward ? steps_ - 1 - i : i;
        state = Step(projected[static_cast<size_t>(t)], state);
        outputs[static_cast<size_t>(t)] = state.h;
        LS_RETURN_IF_ERROR(status());
      }
      const std::string joined = steps_ == 1 ? outputs[0] : Add(OpType::kConcat, outputs, {{"axis", int64_t{0}}});
      all.push_back(Reshape(joined, {steps_, 1, batch_, hidden_}));
      last_h.push_back(Reshape(state.h, {1, batch_, hidden_}));
      if (type_ == "LSTM") last_c.push_back(Reshape(state.c, {1, batch_, hidden_}));
    }
    Give(0, Join(all, 1), {2, 0, 1, 3});
    Give(1, Join(last_h, 0), {1, 0, 2});
    if (type_ == "LSTM") Give(2, Join(last_c, 0), {1, 0, 2});
    return status();
  }

 private:
  struct State {
    std::string h;
    std::string c;  // of an LSTM
  };

  absl::Status ReadAttributes();
  absl::Status ReadInputs();

  const std::string& input(CellInput index) const { return inputs_[index]; }

  std::vector<std::string> Split(const std::string& x, int64_t axis, const std::vector<int64_t>& sizes) {
    if (sizes.size() == 1) return {x};
    return AddMany(OpType::kSplit, {x}, {{"axis", axis}, {"split", sizes}}, static_cast<int64_t>(sizes.size()));
  }

  // a * b^T + c
  std::string Product(const std::string& a, const std::string& b, const std::string& c) {
    std::vector<std::string> inputs = {a, b};
    if (!c.empty()) inputs.push_back(c);
    return Add(OpType::kGemm, std::move(inputs), {{"transB", int64_t{1}}});
  }

  std::string Activate(size_t which, const std::string& x) {
    const std::string& name = activations_[which];
    return Add(name == "Tanh" ? OpType::kTanh : name == "Sigmoid" ? OpType::kSigmoid : OpType::kRelu, {x});
  }

  std::string Join(const std::vector<std::string>& directions, int64_t axis) {
    return directions.size() == 1 ? directions[0] : Add(OpType::kConcat, directions, {{"axis", axis}});
  }

  // The output under its name in the file; with the batch in front, moved there.
  void Give(int output, std::string value, const std::vector<int64_t>& batch_first) {
    if (output >= call_.node->output_size() || call_.node->output(output).empty()) return;
    if (layout_ == 1) value = Add(OpType::kTranspose, {value}, {{"perm", batch_first}});
    Expansion::Give(output, value);
  }

  // Direction d of [directions, ...], as `shape`; "" stays "".
  std::string Of(const std::string& x, int64_t d, Shape shape) {
    if (x.empty()) return x;
    const std::string part = directions_ == 1 ? x : Split(x, 0, {1, 1})[static_cast<size_t>(d)];
    return Reshape(part, std::move(shape));
  }

  // The halves of the bias that belong to the inputs and to the state; "" without one.
  std::pair<std::string, std::string> Biases(int64_t d) {
    if (input(kB).empty()) return {"", ""};
    const std::vector<std::string> halves =
        Split(Of(input(kB), d, {2 * gates_ * hidden_}), 0, {gates_ * hidden_, gates_ * hidden_});
    return {halves[0], halves[1]};
  }

  // The state before the first step, where the file gives none.
  absl::Status DefineZeros() {
    if (!input(kInitialH).empty() && (type_ != "LSTM" || !input(kInitialC).empty())) return absl::OkStatus();
    zeros_ = importer_->Fresh(absl::StrCat(call_.label, ".zeros"));
    LS_ASSIGN_OR_RETURN(Tensor zeros, importer_->NewConstant(dtype_, {batch_, hidden_}));
    importer_->Define(zeros_, std::move(zeros));
    return absl::OkStatus();
  }

  State Begin(int64_t d) {
    State state;
    const auto from = [&](const std::string& given, int64_t perm_directions) -> std::string {
      if (!given.empty()) {
        const std::string ordered =
            layout_ == 1 ? Add(OpType::kTranspose, {given}, {{"perm", std::vector<int64_t>{1, 0, 2}}}) : given;
        return Of(ordered, perm_directions, {batch_, hidden_});
      }
      return zeros_;
    };
    state.h = from(input(kInitialH), d);
    if (type_ == "LSTM") state.c = from(input(kInitialC), d);
    return state;
  }

  // What the inputs of each step give to the gates: [batch, gates * hidden] per step.
  std::vector<std::string> Project(int64_t d) {
    const std::string w = Of(input(kW), d, {gates_ * hidden_, width_});
    auto [bias, recurrent] = Biases(d);
    if (!bias.empty() && !separate_bias_) {
      bias = Add(OpType::kAdd, {bias, recurrent});
    } else if (!bias.empty()) {
      // The bias of the reset gate's product stays apart.
      const std::vector<std::string> parts = Split(recurrent, 0, {2 * hidden_, hidden_});
      const std::vector<std::string> own = Split(bias, 0, {2 * hidden_, hidden_});
      bias = Add(OpType::kConcat, {Add(OpType::kAdd, {own[0], parts[0]}), own[1]}, {{"axis", int64_t{0}}});
      reset_bias_ = parts[1];
    }
    const std::string x =
        layout_ == 1 ? Add(OpType::kTranspose, {input(kX)}, {{"perm", std::vector<int64_t>{1, 0, 2}}}) : input(kX);
    const std::string projected = Product(Reshape(x, {steps_ * batch_, width_}), w, bias);
    recurrence_ = Of(input(kR), d, {gates_ * hidden_, hidden_});
    if (type_ == "GRU") recurrence_parts_ = Split(recurrence_, 0, {2 * hidden_, hidden_});
    if (!input(kPeepholes).empty()) {
      peepholes_ = Split(Of(input(kPeepholes), d, {3 * hidden_}), 0, {hidden_, hidden_, hidden_});
    }
    return Split(projected, 0, std::vector<int64_t>(static_cast<size_t>(steps_), batch_));
  }

  State Step(const std::string& projected, const State& before) {
    if (type_ == "LSTM") return LstmStep(projected, before);
    if (type_ == "GRU") return GruStep(projected, before);
    return {Activate(0, Product(before.h, recurrence_, projected)), ""};
  }

  // i, o, f = sigmoid, c = f * c + i * tanh, h = o * tanh(c); peepholes look at the cell before, o's at the new one.
  State LstmStep(const std::string& projected, const State& before) {
    const std::string gates = Product(before.h, recurrence_, projected);
    std::string i, o, f, candidate;
    if (peepholes_.empty()) {
      const std::vector<std::string> parts = Split(gates, 1, {3 * hidden_, hidden_});
      const std::vector<std::string> open = Split(Activate(0, parts[0]), 1, {hidden_, hidden_, hidden_});
      i = open[0], o = open[1], f = open[2];
      candidate = Activate(1, parts[1]);
    } else {
      const std::vector<std::string> parts = Split(gates, 1, {hidden_, hidden_, hidden_, hidden_});
      const auto look = [&](const std::string& gate, size_t which, const std::string& cell) {
        return Add(OpType::kAdd, {gate, Add(OpType::kMul, {cell, peepholes_[which]})});
      };
      i = Activate(0, look(parts[0], 0, before.c));
      f = Activate(0, look(parts[2], 2, before.c));
      candidate = Activate(1, parts[3]);
      const std::string cell = Cell(f, before.c, i, candidate);
      o = Activate(0, look(parts[1], 1, cell));
      return {Add(OpType::kMul, {o, Activate(2, cell)}), cell};
    }
    const std::string cell = Cell(f, before.c, i, candidate);
    return {Add(OpType::kMul, {o, Activate(2, cell)}), cell};
  }

  std::string Cell(const std::string& f, const std::string& c, const std::string& i, const std::string& candidate) {
    return Add(OpType::kAdd, {Add(OpType::kMul, {f, c}), Add(OpType::kMul, {i, candidate})});
  }

  // z, r = sigmoid; n = tanh of the inputs and the state reset before or after its product; h = n + z * (h - n).
  State GruStep(const std::string& projected, const State& before) {
    const std::vector<std::string> x = Split(projected, 1, {2 * hidden_, hidden_});
    const std::vector<std::string> open =
        Split(Activate(0, Product(before.h, recurrence_parts_[0], x[0])), 1, {hidden_, hidden_});
    std::string n;
    if (separate_bias_) {
      const std::string product = Product(before.h, recurrence_parts_[1], reset_bias_);
      n = Activate(1, Add(OpType::kAdd, {x[1], Add(OpType::kMul, {open[1], product})}));
    } else {
      const std::string reset = Add(OpType::kMul, {open[1], before.h});
      n = Activate(1, Product(reset, recurrence_parts_[1], x[1]));
    }
    const std::string difference = Add(OpType::kSub, {before.h, n});
    return {Add(OpType::kAdd, {n, Add(OpType::kMul, {open[0], difference})}), ""};
  }

  const std::string type_;
  const int64_t gates_;
  std::vector<std::string> inputs_;
  std::vector<std::string> activations_;
  std::string direction_ = "forward";
  int64_t directions_ = 1;
  int64_t hidden_ = 0;
  int64_t layout_ = 0;
  bool separate_bias_ = false;  // GRU: linear_before_reset
  DType dtype_ = DType::kF32;
  int64_t steps_ = 0;
  int64_t batch_ = 0;
  int64_t width_ = 0;
  std::string zeros_;
  // Of the direction that is read.
  std::string recurrence_;
  std::vector<std::string> recurrence_parts_;
  std::vector<std::string> peepholes_;
  std::string reset_bias_;
};

absl::Status OnnxImporter::Recurrent::ReadAttributes() {
  for (const onnx::AttributeProto& attribute : call_.node->attribute()) {
    const std::string& name = attribute.name();
    if (name == "hidden_size") {
      hidden_ = attribute.i();
    } else if (name == "direction") {
      direction_ = attribute.s();
    } else if (name == "layout") {
      layout_ = attribute.i();
    } else if (name == "linear_before_reset") {
      separate_bias_ = type_ == "GRU" && attribute.i() != 0;
    } else if (name == "activations") {
      activations_.assign(attribute.strings().begin(), attribute.strings().end());
    } else if (name != "output_sequence" && (name != "input_forget" || attribute.i() != 0)) {
      return absl::UnimplementedError(absl::StrCat("attribute '", name, "' is not supported"));
    }
  }
  if (direction_ != "forward" && direction_ != "reverse" && direction_ != "bidirectional") {
    return absl::InvalidArgumentError(absl::StrCat("the direction '", direction_, "' does not exist"));
  }
  directions_ = direction_ == "bidirectional" ? 2 : 1;
  const std::vector<std::string>& usual = Cells().at(type_).activations;
  if (activations_.empty()) activations_ = usual;
  for (size_t i = 0; i < activations_.size(); ++i) {
    const std::string& name = activations_[i];
    const bool known = name == "Tanh" || name == "Sigmoid" || name == "Relu";
    if (!known || name != activations_[i % usual.size()] || activations_.size() % usual.size() != 0) {
      return absl::UnimplementedError(
          absl::StrCat("activation '", name, "'; supported are Tanh, Sigmoid and Relu, the same in both directions"));
    }
  }
  return absl::OkStatus();
}

absl::Status OnnxImporter::Recurrent::ReadInputs() {
  inputs_ = InputsOf(*call_.node);
  if (inputs_.size() < 3 || inputs_.size() > kInputs) return absl::InvalidArgumentError("takes three to eight inputs");
  inputs_.resize(kInputs);
  LS_ASSIGN_OR_RETURN(const ValueInfo x, importer_->InfoOf(input(kX)));
  LS_ASSIGN_OR_RETURN(const ValueInfo w, importer_->InfoOf(input(kW)));
  LS_ASSIGN_OR_RETURN(const ValueInfo r, importer_->InfoOf(input(kR)));
  if (x.shape.size() != 3 || r.shape.size() != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("X ", ShapeString(x.shape), " and R ", ShapeString(r.shape), " are not of three dimensions"));
  }
  dtype_ = x.dtype;
  if (hidden_ == 0) hidden_ = r.shape[2];
  if (hidden_ != r.shape[2]) {
    return absl::InvalidArgumentError(absl::StrCat("hidden_size is ", hidden_, ", R is ", ShapeString(r.shape)));
  }
  constexpr int64_t kMostHidden = int64_t{1} << 40;  // so that the gates together can be counted
  if (hidden_ < 1 || hidden_ > kMostHidden) {
    return absl::InvalidArgumentError(absl::StrCat("a state of ", hidden_, " values"));
  }
  steps_ = x.shape[layout_ == 1 ? 1 : 0];
  batch_ = x.shape[layout_ == 1 ? 0 : 1];
  width_ = x.shape[2];
  if (r.shape[0] != directions_ || r.shape[1] != gates_ * hidden_ || r.shape[2] != hidden_) {
    return absl::InvalidArgumentError(absl::StrCat("R is ", ShapeString(r.shape), ", expected ",
                                                   ShapeString({directions_, gates_ * hidden_, hidden_})));
  }
  if (w.shape != Shape{directions_, gates_ * hidden_, width_}) {
    return absl::InvalidArgumentError(absl::StrCat("W is ", ShapeString(w.shape), ", expected ",
                                                   ShapeString({directions_, gates_ * hidden_, width_})));
  }
  if (steps_ < 1 || batch_ < 1) return absl::InvalidArgumentError("has no step or no sample");
  constexpr int64_t kMostSteps = 4096;
  if (steps_ > kMostSteps) {
    return absl::UnimplementedError(
        absl::StrCat("a sequence of ", steps_, " steps; at most ", kMostSteps, " are supported. Cut the sequences"));
  }
  if (input(kLengths).empty()) return absl::OkStatus();
  LS_ASSIGN_OR_RETURN(const Tensor* lengths, importer_->NeedKnown(call_, kLengths, "sequence_lens"));
  if (lengths->dtype() == DType::kI32) {
    const auto elements = lengths->elements<int32_t>();
    if (std::all_of(elements.begin(), elements.end(), [&](int32_t n) { return n == steps_; })) return absl::OkStatus();
  }
  return absl::UnimplementedError("sequences of different lengths in one batch");
}

absl::Status OnnxImporter::ReadRecurrent(Call& call) { return Recurrent(this, call).Read(); }

}  // namespace lockstep
