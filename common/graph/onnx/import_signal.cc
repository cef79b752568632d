// ONNX's ops for signals: Fourier transforms, which become products with constant matrices, and windows and mel
// weights, which are constants.
#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/graph/onnx/expansion.h"
#include "common/graph/onnx/node_fields.h"
#include "common/graph/ops/onnx_dtype.h"
#include "common/graph/ops/schema.h"
#include "common/math/trigonometry.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

constexpr double kTurn = 6.283185307179586476925;

constexpr int64_t kMostLength = int64_t{1} << 14;

absl::Status CheckLength(int64_t length) {
  if (length >= 1 && length <= kMostLength) return absl::OkStatus();
  return absl::UnimplementedError(
      absl::StrCat("transforms ", length, " elements; 1 to ", kMostLength, " are supported, as one product"));
}

absl::StatusOr<Tensor> Converted(DType dtype, Shape shape, const std::vector<double>& values) {
  if (dtype == DType::kF64) return Tensor::Of<double>(std::move(shape), values);
  const std::vector<float> rounded(values.begin(), values.end());
  if (dtype == DType::kF32) return Tensor::Of<float>(std::move(shape), rounded);
  return absl::UnimplementedError(absl::StrCat("gives ", DTypeName(dtype), "; F32 and F64 are supported"));
}

}  // namespace

class OnnxImporter::Fourier : private Expansion {
 public:
  Fourier(OnnxImporter* importer, const Call& call) : Expansion(importer, call) {}

  struct Transform {
    int64_t axis = 0;    // of the dimensions before the last, which holds real and imaginary part
    int64_t length = 0;  // 0: of the input
    bool inverse = false;
    bool onesided = false;
  };

  absl::Status GiveTransformed(const ValueInfo& x, Transform transform) {
    Shape shape = x.shape;
    const bool to_real = transform.inverse && transform.onesided;  // of half of a spectrum
    const int64_t in = shape[static_cast<size_t>(transform.axis)];
    if (transform.length == 0) transform.length = to_real ? 2 * (in - 1) : in;
    LS_RETURN_IF_ERROR(CheckLength(transform.length));
    const int64_t length = transform.length;
    const int64_t taken = std::min(in, to_real ? length / 2 + 1 : length);  // the rest is beyond the length
    const int64_t out = transform.onesided && !to_real ? length / 2 + 1 : length;
    LS_RETURN_IF_ERROR(importer_->TakeMemory(4 * out * taken * DTypeSize(x.dtype)));
    dtype_ = x.dtype;
    waves_ = MakeWaves(out, taken, length, transform.inverse ? 1.0 / static_cast<double>(length) : 1.0);
    // What the half of the spectrum that is left out has too counts twice.
    for (int64_t k = 0; to_real && k < out * taken; ++k) {
      const int64_t column = k % taken;
      if (column == 0 || 2 * column == length) continue;
      waves_.cosines[static_cast<size_t>(k)] *= 2;
      waves_.sines[static_cast<size_t>(k)] *= 2;
    }
    matrix_ = {out, taken};
    const std::vector<std::string> parts = PartsOf(x, transform.axis, taken);
    shape[static_cast<size_t>(transform.axis)] = out;
    shape.back() = 1;
    const double sign = transform.inverse ? -1 : 1;
    std::string real = Cosines(parts[0]);
    if (parts.size() == 2) real = Add(OpType::kAdd, {real, Scale(Sines(parts[1]), sign)});
    real = Reshape(real, shape);
    if (to_real) {
      Give(0, real);
      return status();
    }
    std::string imaginary = Scale(Sines(parts[0]), -sign);
    if (parts.size() == 2) imaginary = Add(OpType::kAdd, {imaginary, Cosines(parts[1])});
    Give(0,
         Add(OpType::kConcat, {real, Reshape(imaginary, shape)}, {{"axis", static_cast<int64_t>(shape.size()) - 1}}));
    return status();
  }

  // Transforms of `length` elements, `step` apart, of a signal [batch, elements, 1 or 2].
  absl::Status GiveFrames(const ValueInfo& x, const std::string& window, int64_t length, int64_t step, bool onesided) {
    const int64_t frames = (x.shape[1] - length) / step + 1;
    LS_RETURN_IF_ERROR(CheckLength(length));
    const int64_t out = onesided ? length / 2 + 1 : length;
    LS_RETURN_IF_ERROR(importer_->TakeMemory(2 * out * length * DTypeSize(x.dtype) + frames * length * 8));
    dtype_ = x.dtype;
    waves_ = MakeWaves(length, out, length, 1);
    matrix_ = {length, out};
    std::vector<int64_t> places;
    for (int64_t i = 0; i < frames * length; ++i) places.push_back(i / length * step + i % length);
    const std::string taken = Constant(Tensor::Of<int64_t>({frames, length}, places));
    std::vector<std::string> parts;
    for (int64_t part = 0; part < x.shape[2]; ++part) {
      const std::string one = Reshape(Part(call_.node->input(0), 2, part, part + 1), {x.shape[0], x.shape[1]});
      const std::string framed = Add(OpType::kGather, {one, taken}, {{"axis", int64_t{1}}});
      parts.push_back(window.empty() ? framed : Add(OpType::kMul, {framed, window}));
    }
    const auto product = [&](const std::string& part, const std::vector<double>& waves) {
      return Add(OpType::kMatMul, {part, Numbers(dtype_, matrix_, waves)});
    };
    std::string real = product(parts[0], waves_.cosines);
    std::string imaginary = Scale(product(parts[0], waves_.sines), -1);
    if (parts.size() == 2) {
      real = Add(OpType::kAdd, {real, product(parts[1], waves_.sines)});
      imaginary = Add(OpType::kAdd, {imaginary, product(parts[1], waves_.cosines)});
    }
    const RawAttributes last = {{"axes", std::vector<int64_t>{3}}};
    Give(0, Add(OpType::kConcat, {Add(OpType::kUnsqueeze, {real}, last), Add(OpType::kUnsqueeze, {imaginary}, last)},
                {{"axis", int64_t{3}}}));
    return status();
  }

 private:
  // Cosines and sines of 2 pi i k / length, for i below `rows` and k below `columns`, by `scale`. With products of
  // whole numbers, so that long signals are not less exact.
  struct Waves {
    std::vector<double> cosines;
    std::vector<double> sines;
  };

  static Waves MakeWaves(int64_t rows, int64_t columns, int64_t length, double scale) {
    Waves waves;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t k = 0; k < columns; ++k) {
        const double angle = kTurn * static_cast<double>(i * k % length) / static_cast<double>(length);
        waves.cosines.push_back(scale * Cos(angle));
        waves.sines.push_back(scale * Sin(angle));
      }
    }
    return waves;
  }

  // Real and imaginary part, as [what lies before the axis, taken, what lies behind].
  std::vector<std::string> PartsOf(const ValueInfo& x, int64_t axis, int64_t taken) {
    const auto last = static_cast<int64_t>(x.shape.size()) - 1;
    const auto at = x.shape.begin() + axis;
    const Shape planes = {NumElements(Shape(x.shape.begin(), at)), taken,
                          NumElements(Shape(at + 1, x.shape.end() - 1))};
    const std::string cut = taken == *at ? call_.node->input(0) : Part(call_.node->input(0), axis, 0, taken);
    std::vector<std::string> parts;
    for (int64_t part = 0; part < x.shape.back(); ++part) {
      parts.push_back(Reshape(x.shape.back() == 1 ? cut : Part(cut, last, part, part + 1), planes));
    }
    return parts;
  }

  std::string Cosines(const std::string& x) {
    return Add(OpType::kMatMul, {Numbers(dtype_, matrix_, waves_.cosines), x});
  }
  std::string Sines(const std::string& x) { return Add(OpType::kMatMul, {Numbers(dtype_, matrix_, waves_.sines), x}); }

  DType dtype_ = DType::kF32;
  Waves waves_;
  Shape matrix_;
};

absl::Status OnnxImporter::ReadDft(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"axis", "inverse", "onesided"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.empty()) return absl::InvalidArgumentError("has no input");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(inputs[0]));
  LS_RETURN_IF_ERROR(CheckFloating(x, "the input"));
  const auto rank = static_cast<int64_t>(x.shape.size());
  if (rank < 2 || x.shape.back() < 1 || x.shape.back() > 2 || NumElements(x.shape) == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("the last dimension of ", ShapeString(x.shape), " is neither real (1) nor complex (2)"));
  }
  Fourier::Transform transform{.inverse = IntOf(raw, "inverse", 0) != 0, .onesided = IntOf(raw, "onesided", 0) != 0};
  int64_t axis = opset() < 20 ? IntOf(raw, "axis", 1) : -2;
  if (inputs.size() > 2) {
    LS_ASSIGN_OR_RETURN(axis, KnownInt(call, 2, "axis"));
  }
  LS_ASSIGN_OR_RETURN(transform.axis, NormalizeAxis(axis, rank));
  if (transform.axis == rank - 1) return absl::InvalidArgumentError("transforms the dimension of the two parts");
  if (inputs.size() > 1 && !inputs[1].empty()) {
    LS_ASSIGN_OR_RETURN(transform.length, KnownInt(call, 1, "dft_length"));
    LS_RETURN_IF_ERROR(CheckLength(transform.length));
  }
  return Fourier(this, call).GiveTransformed(x, transform);
}

absl::Status OnnxImporter::ReadStft(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"onesided"}));
  const std::vector<std::string> inputs = InputsOf(*call.node);
  if (inputs.size() < 2) return absl::InvalidArgumentError("takes a signal and a step");
  LS_ASSIGN_OR_RETURN(const ValueInfo x, InfoOf(inputs[0]));
  LS_RETURN_IF_ERROR(CheckFloating(x, "the signal"));
  if (x.shape.size() != 3 || x.shape[2] < 1 || x.shape[2] > 2) {
    return absl::InvalidArgumentError(
        absl::StrCat("a signal is [batch, elements, 1 or 2], not ", ShapeString(x.shape)));
  }
  LS_ASSIGN_OR_RETURN(const int64_t step, KnownInt(call, 1, "frame_step"));
  const bool has_window = inputs.size() > 2 && !inputs[2].empty();
  int64_t length = 0;
  if (has_window) {
    LS_ASSIGN_OR_RETURN(const ValueInfo window, InfoOf(inputs[2]));
    if (window.shape.size() != 1 || window.dtype != x.dtype) return absl::InvalidArgumentError("a window is a list");
    length = window.shape[0];
  }
  if (inputs.size() > 3) {
    LS_ASSIGN_OR_RETURN(const int64_t given, KnownInt(call, 3, "frame_length"));
    if (has_window && given != length) return absl::InvalidArgumentError("the window has another length than a frame");
    length = given;
  }
  if (step < 1 || length < 1 || length > x.shape[1]) {
    return absl::InvalidArgumentError(
        absl::StrCat("frames of ", length, " elements, ", step, " apart, of ", x.shape[1]));
  }
  const bool onesided = IntOf(raw, "onesided", 1) != 0;
  return Fourier(this, call).GiveFrames(x, has_window ? inputs[2] : "", length, step, onesided);
}

// Sums of cosines, over a period or up to the last element.
absl::Status OnnxImporter::ReadWindow(Call& call) {
  LS_ASSIGN_OR_RETURN(const RawAttributes raw, ReadAttributes(*call.node));
  LS_RETURN_IF_ERROR(OnlyAttributes(raw, {"output_datatype", "periodic"}));
  LS_ASSIGN_OR_RETURN(const int64_t size, KnownInt(call, 0, "size"));
  if (size < 1 || size > kMostLength)
    return absl::InvalidArgumentError(absl::StrCat("a window of ", size, " elements"));
  LS_ASSIGN_OR_RETURN(const DType dtype, DTypeFromOnnx(IntOf(raw, "output_datatype", onnx::FLOAT)));
  const std::string& type = call.node->op_type();
  const double second = type == "BlackmanWindow" ? 0.08 : 0;
  const double first = type == "HannWindow" ? 0.5 : type == "HammingWindow" ? 21.0 / 46 : 0.5;
  const double middle = type == "HannWindow" ? 0.5 : type == "HammingWindow" ? 25.0 / 46 : 0.42;
  const int64_t period = IntOf(raw, "periodic", 1) != 0 ? size : std::max<int64_t>(size - 1, 1);
  std::vector<double> values;
  for (int64_t i = 0; i < size; ++i) {
    const double angle = kTurn * static_cast<double>(i) / static_cast<double>(period);
    values.push_back(middle - first * Cos(angle) + second * Cos(2 * angle));
  }
  LS_ASSIGN_OR_RETURN(Tensor window, Converted(dtype, {size}, values));
  Define(call.node->output(0), std::move(window));
  return absl::OkStatus();
}

}  // namespace lockstep
