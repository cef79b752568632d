#include "worker/data/many_files.h"

#include <glob.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<std::vector<std::string>> Expand(const std::string& path) {
  std::error_code unknown;
  if (path.find_first_of("*?[") == std::string::npos || std::filesystem::exists(path, unknown)) {
    return std::vector<std::string>{path};
  }
  glob_t found = {};
  const int result = glob(path.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  if (result == GLOB_NOMATCH) return absl::NotFoundError(absl::StrCat(path, ": no file matches the pattern"));
  if (result != 0) return absl::UnavailableError(absl::StrCat(path, ": the pattern could not be looked up"));
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::string FormText(const StoredArray& array) {
  return absl::StrCat(array.name, " ", DTypeName(array.dtype),
                      ShapeString(Shape(array.shape.begin() + 1, array.shape.end())));
}

bool IsTableNumber(DType dtype) { return dtype == DType::kI64 || dtype == DType::kF64; }

// InvalidArgument when `other` cannot stand behind `first`.
absl::Status CheckSameForm(const StoredArray& first, const StoredArray& other) {
  const bool shapes =
      std::equal(first.shape.begin() + 1, first.shape.end(), other.shape.begin() + 1, other.shape.end());
  const bool types = first.dtype == other.dtype || (IsTableNumber(first.dtype) && IsTableNumber(other.dtype));
  if (shapes && types && first.name == other.name) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(other.path, ": has ", FormText(other), " per sample, ", first.path,
                                                 " ", FormText(first),
                                                 "; all files of a data set must have the same form"));
}

// Copies the elements to `to`, as `dtype`.
void CopyStored(const StoredArray& array, DType dtype, std::byte* to) {
  const int64_t count = array.num_elements();
  if (array.dtype == dtype) {
    std::memcpy(to, array.elements.get(), static_cast<size_t>(count * DTypeSize(dtype)));
    return;
  }
  const auto* const from = reinterpret_cast<const int64_t*>(array.elements.get());
  std::transform(from, from + count, reinterpret_cast<double*>(to),
                 [](int64_t value) { return static_cast<double>(value); });
}

// Array `index` of all parts, which lose it.
absl::StatusOr<StoredArray> Join(std::vector<StoredData>& parts, size_t index) {
  const StoredArray& first = parts[0].arrays[index];
  StoredArray whole{.name = first.name, .dtype = first.dtype, .shape = first.shape};
  whole.path = first.path;
  whole.shape[0] = 0;
  for (const StoredData& part : parts) {
    const StoredArray& array = part.arrays[index];
    LS_RETURN_IF_ERROR(CheckSameForm(first, array));
    whole.shape[0] += array.shape[0];
    if (array.dtype == DType::kF64) whole.dtype = DType::kF64;
  }
  LS_ASSIGN_OR_RETURN(Tensor made, Tensor::Create(whole.dtype, whole.shape));
  const auto tensor = std::make_shared<Tensor>(std::move(made));
  whole.elements = std::shared_ptr<std::byte>(tensor, tensor->data());
  // Which part element i comes from: the last that begins at or before it.
  using Place = std::pair<int64_t, std::function<std::string(int64_t)>>;
  const auto places = std::make_shared<std::vector<Place>>();
  int64_t begin = 0;
  for (StoredData& part : parts) {
    StoredArray& array = part.arrays[index];
    CopyStored(array, whole.dtype, tensor->data() + begin * DTypeSize(whole.dtype));
    places->emplace_back(begin, std::move(array.element));
    begin += array.num_elements();
    array.elements.reset();
  }
  whole.element = [places](int64_t i) {
    const auto after = std::upper_bound(places->begin(), places->end(), i,
                                        [](int64_t value, const Place& place) { return value < place.first; });
    const Place& place = *std::prev(after);
    return place.second(i - place.first);
  };
  return whole;
}

}  // namespace

absl::StatusOr<std::vector<job::DataFiles>> ExpandPatterns(const job::DataFiles& files) {
  LS_ASSIGN_OR_RETURN(const std::vector<std::string> inputs,
                      Expand(files.has_tokens() ? files.tokens() : files.inputs()));
  std::vector<std::string> labels(inputs.size());
  if (files.has_labels()) {
    LS_ASSIGN_OR_RETURN(labels, Expand(files.labels()));
  }
  if (labels.size() != inputs.size()) {
    return absl::InvalidArgumentError(absl::StrCat(files.inputs(), " are ", inputs.size(), " files, ", files.labels(),
                                                   " ", labels.size(), "; inputs and labels must have as many"));
  }
  std::vector<job::DataFiles> each(inputs.size(), files);
  for (size_t i = 0; i < each.size(); ++i) {
    files.has_tokens() ? each[i].set_tokens(inputs[i]) : each[i].set_inputs(inputs[i]);
    if (files.has_labels()) each[i].set_labels(labels[i]);
  }
  return each;
}

absl::StatusOr<StoredData> Concatenate(std::vector<StoredData> parts) {
  LS_CHECK(!parts.empty(), "a data set has at least one file");
  if (parts.size() == 1) return std::move(parts[0]);
  StoredData whole{.num_samples = 0, .arrays = {}, .features = parts[0].features, .label = parts[0].label};
  for (const StoredData& part : parts) {
    whole.num_samples += part.num_samples;
    if (part.arrays.size() == parts[0].arrays.size() && part.label.has_value() == whole.label.has_value()) continue;
    return absl::InvalidArgumentError(absl::StrCat(part.arrays[0].path, ": has other fields than ",
                                                   parts[0].arrays[0].path,
                                                   "; all files of a data set must have the same form"));
  }
  for (size_t index = 0; index < parts[0].arrays.size(); ++index) {
    LS_ASSIGN_OR_RETURN(StoredArray array, Join(parts, index));
    whole.arrays.push_back(std::move(array));
  }
  return whole;
}

}  // namespace lockstep::worker
