#include "chief/checkpoint/checkpoint_diff.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "common/status/status_macros.h"
#include "common/tensor/dtype.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kPiece = uint64_t{1} << 20;  // a multiple of every element's size

using TensorsByName = std::map<std::string, const ManifestTensor*>;

TensorsByName ByName(const Manifest& manifest) {
  TensorsByName tensors;
  for (const ManifestTensor& tensor : manifest.tensors()) tensors[tensor.name()] = &tensor;
  return tensors;
}

std::string TypeOf(const ManifestTensor& tensor) {
  return absl::StrCat(tensor.dtype(), "[", absl::StrJoin(tensor.shape(), ", "), "]");
}

struct Distance {
  uint64_t elements = 0;
  uint64_t differ = 0;
  double most = 0;     // of those that are finite in both
  bool finite = true;  // all are
};

template <typename T>
void CompareFloats(const char* one, const char* other, Distance& distance) {
  T a, b;
  std::memcpy(&a, one, sizeof a);
  std::memcpy(&b, other, sizeof b);
  const double apart = std::abs(static_cast<double>(a) - static_cast<double>(b));
  if (std::isfinite(apart)) {
    distance.most = std::max(distance.most, apart);
  } else {
    distance.finite = false;
  }
}

void Compare(const std::string& one, const std::string& other, DType type, Distance& distance) {
  const size_t size = DTypeSize(type);
  for (size_t at = 0; at < one.size(); at += size, ++distance.elements) {
    if (std::memcmp(&one[at], &other[at], size) == 0) continue;
    ++distance.differ;
    if (type == DType::kF32) CompareFloats<float>(&one[at], &other[at], distance);
    if (type == DType::kF64) CompareFloats<double>(&one[at], &other[at], distance);
  }
}

std::string Text(const Distance& distance, DType type) {
  std::string text = absl::StrCat(distance.differ, " of ", distance.elements, " values differ");
  if (type != DType::kF32 && type != DType::kF64) return text;
  absl::StrAppendFormat(&text, ", by at most %.3g", distance.most);
  if (!distance.finite) absl::StrAppend(&text, " where both are finite; some are not");
  return text;
}

absl::StatusOr<std::string> DiffValues(const CheckpointReader& first, const CheckpointReader& second,
                                       const ManifestTensor& tensor) {
  const std::optional<DType> type = ParseDType(tensor.dtype());
  if (!type.has_value()) return absl::DataLossError(absl::StrCat(tensor.name(), " has type ", tensor.dtype()));
  Distance distance;
  const uint64_t bytes = tensor.end() - tensor.begin();
  for (uint64_t at = 0; at < bytes; at += kPiece) {
    std::string one(std::min(kPiece, bytes - at), '\0');
    std::string other(one.size(), '\0');
    LS_RETURN_IF_ERROR(first.ReadTensor(tensor.name(), at, absl::MakeSpan(one)));
    LS_RETURN_IF_ERROR(second.ReadTensor(tensor.name(), at, absl::MakeSpan(other)));
    Compare(one, other, *type, distance);
  }
  return Text(distance, *type);
}

}  // namespace

absl::StatusOr<std::vector<std::string>> DiffCheckpoints(const CheckpointReader& first,
                                                         const CheckpointReader& second) {
  const TensorsByName before = ByName(first.manifest());
  const TensorsByName after = ByName(second.manifest());
  std::map<std::string, std::string> lines;  // by name
  for (const auto& [name, tensor] : before) {
    const auto other = after.find(name);
    if (other == after.end()) {
      lines[name] = absl::StrCat("only in the first: ", TypeOf(*tensor));
    } else if (TypeOf(*tensor) != TypeOf(*other->second)) {
      lines[name] = absl::StrCat(TypeOf(*tensor), " became ", TypeOf(*other->second));
    } else if (tensor->sha256() != other->second->sha256()) {
      LS_ASSIGN_OR_RETURN(lines[name], DiffValues(first, second, *tensor));
    }
  }
  for (const auto& [name, tensor] : after) {
    if (!before.contains(name)) lines[name] = absl::StrCat("only in the second: ", TypeOf(*tensor));
  }
  std::vector<std::string> text;
  for (const auto& [name, line] : lines) text.push_back(absl::StrCat(name, ": ", line));
  return text;
}

}  // namespace lockstep::chief
