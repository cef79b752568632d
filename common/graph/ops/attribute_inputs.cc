#include "common/graph/ops/attribute_inputs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

using Kind = AttributeInput::Kind;

// One op's rows stand together, by number of the input.
constexpr AttributeInput kRows[] = {
    {OpType::kClip, 1, "min", Kind::kFloat},
    {OpType::kClip, 2, "max", Kind::kFloat},
    {OpType::kReshape, 1, "shape", Kind::kInts},
    {OpType::kExpand, 1, "shape", Kind::kInts},
    {OpType::kReduceSum, 1, "axes", Kind::kInts},
    {OpType::kReduceMean, 1, "axes", Kind::kInts},
    {OpType::kReduceMax, 1, "axes", Kind::kInts},
    {OpType::kReduceMin, 1, "axes", Kind::kInts},
    {OpType::kReduceProd, 1, "axes", Kind::kInts},
    {OpType::kReduceL1, 1, "axes", Kind::kInts},
    {OpType::kReduceL2, 1, "axes", Kind::kInts},
    {OpType::kReduceLogSum, 1, "axes", Kind::kInts},
    {OpType::kReduceLogSumExp, 1, "axes", Kind::kInts},
    {OpType::kReduceSumSquare, 1, "axes", Kind::kInts},
    {OpType::kSqueeze, 1, "axes", Kind::kInts},
    {OpType::kUnsqueeze, 1, "axes", Kind::kInts},
    {OpType::kSplit, 1, "split", Kind::kInts},
    {OpType::kSlice, 1, "starts", Kind::kInts},
    {OpType::kSlice, 2, "ends", Kind::kInts},
    {OpType::kSlice, 3, "axes", Kind::kInts},
    {OpType::kSlice, 4, "steps", Kind::kInts},
    {OpType::kTile, 1, "repeats", Kind::kInts},
    {OpType::kPad, 1, "pads", Kind::kInts},
    {OpType::kPad, 2, "value", Kind::kFloat},
    {OpType::kPad, 3, "axes", Kind::kInts},
    {OpType::kTrilu, 1, "k", Kind::kInt},
    {OpType::kCumSum, 1, "axis", Kind::kInt},
    {OpType::kTopK, 1, "k", Kind::kInt},
    {OpType::kOneHot, 1, "depth", Kind::kInt},
    {OpType::kResize, 1, "roi", Kind::kFloats},
    {OpType::kResize, 2, "scales", Kind::kFloats},
    {OpType::kResize, 3, "sizes", Kind::kInts},
};

template <typename T>
std::vector<int64_t> Widen(const Tensor& tensor) {
  std::vector<int64_t> values;
  for (const T element : tensor.elements<T>()) values.push_back(static_cast<int64_t>(element));
  return values;
}

bool ReadIntegers(const Tensor& tensor, std::vector<int64_t>* values) {
  switch (tensor.dtype()) {
    case DType::kI64:
      *values = Widen<int64_t>(tensor);
      return true;
    case DType::kI32:
      *values = Widen<int32_t>(tensor);
      return true;
    case DType::kI8:
      *values = Widen<int8_t>(tensor);
      return true;
    case DType::kU8:
      *values = Widen<uint8_t>(tensor);
      return true;
    case DType::kBool:
      *values = Widen<bool>(tensor);
      return true;
    default:
      return false;
  }
}

template <typename T>
std::vector<double> ToDoubles(const Tensor& tensor) {
  std::vector<double> values;
  for (const T element : tensor.elements<T>()) values.push_back(static_cast<double>(element));
  return values;
}

bool ReadFloats(const Tensor& tensor, std::vector<double>* values) {
  switch (tensor.dtype()) {
    case DType::kF32:
      *values = ToDoubles<float>(tensor);
      return true;
    case DType::kF64:
      *values = ToDoubles<double>(tensor);
      return true;
    case DType::kI32:
      *values = ToDoubles<int32_t>(tensor);
      return true;
    case DType::kI64:
      *values = ToDoubles<int64_t>(tensor);
      return true;
    case DType::kI8:
      *values = ToDoubles<int8_t>(tensor);
      return true;
    case DType::kU8:
      *values = ToDoubles<uint8_t>(tensor);
      return true;
    case DType::kBool:
      *values = ToDoubles<bool>(tensor);
      return true;
    default:
      return false;
  }
}

// Up to here every whole number is a double.
constexpr double kExact = 0x1p53;

absl::Status Unfit(const Tensor& tensor, absl::string_view wanted) {
  return absl::InvalidArgumentError(
      absl::StrCat("is ", DTypeName(tensor.dtype()), ShapeString(tensor.shape()), "; it has to be ", wanted));
}

}  // namespace

absl::Span<const AttributeInput> AttributeInputsOf(OpType op) {
  const auto is_of = [op](const AttributeInput& row) { return row.op == op; };
  const auto* first = std::find_if(std::begin(kRows), std::end(kRows), is_of);
  const auto* last = std::find_if_not(first, std::end(kRows), is_of);
  return {first, static_cast<size_t>(last - first)};
}

absl::StatusOr<RawAttribute> AttributeFromTensor(Kind kind, const Tensor& tensor) {
  if (kind == Kind::kFloat || kind == Kind::kFloats) {
    std::vector<double> values;
    if (!ReadFloats(tensor, &values)) return Unfit(tensor, "numbers");
    if (kind == Kind::kFloats) return RawAttribute(std::move(values));
    if (values.size() != 1) return Unfit(tensor, "one number");
    return RawAttribute(values[0]);
  }
  std::vector<int64_t> values;
  std::vector<double> numbers;
  // The depth of a one-hot may be a whole number of a floating type.
  if (kind == Kind::kInt && IsFloating(tensor.dtype()) && ReadFloats(tensor, &numbers) && numbers.size() == 1 &&
      numbers[0] >= -kExact && numbers[0] <= kExact &&
      numbers[0] == static_cast<double>(static_cast<int64_t>(numbers[0]))) {
    return RawAttribute(static_cast<int64_t>(numbers[0]));
  }
  if (!ReadIntegers(tensor, &values)) return Unfit(tensor, "integers");
  if (kind == Kind::kInts) return RawAttribute(std::move(values));
  if (values.size() != 1) return Unfit(tensor, "one integer");
  return RawAttribute(values[0]);
}

}  // namespace lockstep
