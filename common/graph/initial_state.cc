#include "common/graph/initial_state.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/math/math.h"
#include "common/math/trigonometry.h"
#include "common/random/random.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// std::sqrt is correctly rounded by IEEE 754, unlike the rest of libm.
double UniformBound(const InitRule& init) {
  if (init.kind == InitRule::Kind::kUniform) return init.value;
  return init.value * std::sqrt(3.0 / static_cast<double>(init.fan_in));
}

template <typename T>
void FillUniform(double bound, uint64_t seed, const std::string& name, absl::Span<T> elements) {
  const RandomStream stream = RandomStream::For(seed, StreamOfName(name));
  const T rounded = static_cast<T>(bound);
  for (size_t begin = 0; begin < elements.size(); begin += 4) {
    const std::array<uint32_t, 4> block = stream.Block(begin / 4);
    const size_t count = std::min<size_t>(4, elements.size() - begin);
    for (size_t i = 0; i < count; ++i) elements[begin + i] = static_cast<T>(SymmetricUnit(block[i])) * rounded;
  }
}

// Two normally distributed numbers from two that are uniform.
std::array<double, 2> NormalPair(uint32_t first, uint32_t second) {
  constexpr double kTurn = 0x1.921fb54442d18p+2;
  const double distance = SquareRoot(-2.0 * Log((static_cast<double>(first) + 1.0) * 0x1p-32));
  const double angle = kTurn * (static_cast<double>(second) * 0x1p-32);
  return {distance * Cos(angle), distance * Sin(angle)};
}

template <typename T>
void FillNormal(double deviation, uint64_t seed, const std::string& name, absl::Span<T> elements) {
  const RandomStream stream = RandomStream::For(seed, StreamOfName(name));
  for (size_t begin = 0; begin < elements.size(); begin += 4) {
    const std::array<uint32_t, 4> block = stream.Block(begin / 4);
    const size_t count = std::min<size_t>(4, elements.size() - begin);
    for (size_t i = 0; i < count; i += 2) {
      const std::array<double, 2> pair = NormalPair(block[i], block[i + 1]);
      elements[begin + i] = static_cast<T>(deviation * pair[0]);
      if (i + 1 < count) elements[begin + i + 1] = static_cast<T>(deviation * pair[1]);
    }
  }
}

template <typename T>
void Fill(const Variable& variable, uint64_t seed, absl::Span<T> elements) {
  if (variable.init.kind == InitRule::Kind::kConstant) {
    std::fill(elements.begin(), elements.end(), static_cast<T>(variable.init.value));
  } else if (variable.init.kind == InitRule::Kind::kNormal) {
    FillNormal<T>(variable.init.value, seed, variable.name, elements);
  } else {
    FillUniform<T>(UniformBound(variable.init), seed, variable.name, elements);
  }
}

absl::StatusOr<Tensor> FromFile(const Variable& variable, const InitFileReader& read_file) {
  const InitRule& init = variable.init;
  if (read_file == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("variable '", variable.name, "' begins from tensor '",
                                                      init.file_tensor, "' of file ", init.file_sha256,
                                                      ", and no files are at hand here"));
  }
  absl::StatusOr<Tensor> tensor = read_file(init.file_sha256, init.file_tensor);
  if (!tensor.ok()) {
    return absl::Status(tensor.status().code(),
                        absl::StrCat("initial value of variable '", variable.name, "': ", tensor.status().message()));
  }
  if (tensor->dtype() != variable.dtype || tensor->shape() != variable.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("initial value of variable '", variable.name, "': expected ", DTypeName(variable.dtype), " ",
                     ShapeString(variable.shape), ", but tensor '", init.file_tensor, "' of file ", init.file_sha256,
                     " is ", DTypeName(tensor->dtype()), " ", ShapeString(tensor->shape())));
  }
  return tensor;
}

}  // namespace

absl::StatusOr<Tensor> MakeInitialVariable(const Variable& variable, uint64_t seed, const InitFileReader& read_file) {
  if (variable.init.kind == InitRule::Kind::kFile) return FromFile(variable, read_file);
  LS_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(variable.dtype, variable.shape));
  switch (variable.dtype) {
    case DType::kF32:
      Fill(variable, seed, tensor.elements<float>());
      return tensor;
    case DType::kF64:
      Fill(variable, seed, tensor.elements<double>());
      return tensor;
    case DType::kI64:
      if (variable.init.kind == InitRule::Kind::kConstant) {
        for (int64_t& element : tensor.elements<int64_t>()) element = static_cast<int64_t>(variable.init.value);
        return tensor;
      }
      [[fallthrough]];
    default:
      return absl::InvalidArgumentError(absl::StrCat("variable '", variable.name, "' has element type ",
                                                     DTypeName(variable.dtype),
                                                     "; variables are F32 (or F64 in checks of gradients)"));
  }
}

absl::StatusOr<Tensor> MakeInitialTensor(const MetaGraph& metagraph, const StateTensor& tensor, uint64_t seed,
                                         const InitFileReader& read_file) {
  switch (tensor.kind) {
    case StateKind::kParameter:
    case StateKind::kStatistic:
    case StateKind::kFrozen:
    case StateKind::kAverage:
    case StateKind::kAlias:
      if (tensor.variable == kStepCounterName) return Tensor::Of<int64_t>({}, {0});
      for (const Variable& variable : metagraph.forward.variables) {
        // A second name of an average begins as the parameter does.
        if (variable.name == tensor.variable || EmaName(variable.name) == tensor.variable)
          return MakeInitialVariable(variable, seed, read_file);
      }
      return absl::InternalError(absl::StrCat("the metagraph has no variable '", tensor.variable, "'"));
    case StateKind::kExponent:
      return Tensor::Of<int32_t>({}, {kExponentUnset});
    case StateKind::kSlot:
    case StateKind::kCounter:
      return Tensor::Create(tensor.spec.dtype, tensor.spec.shape);
  }
  return absl::InternalError("a state tensor has one of the known kinds");
}

absl::StatusOr<std::vector<Tensor>> MakeInitialState(const MetaGraph& metagraph, uint64_t seed,
                                                     const InitFileReader& read_file) {
  std::vector<Tensor> state;
  for (const StateTensor& spec : MakeStateLayout(metagraph).tensors) {
    LS_ASSIGN_OR_RETURN(Tensor tensor, MakeInitialTensor(metagraph, spec, seed, read_file));
    state.push_back(std::move(tensor));
  }
  return state;
}

}  // namespace lockstep
