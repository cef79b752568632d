#include "worker/data/stored_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/token_file.h"

namespace lockstep::worker {
namespace {

Shape SampleShape(const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); }

// A file of inputs and one of labels, both IDX or npy.
absl::StatusOr<StoredData> ReadArrays(const job::DataFiles& files, const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(ArrayFile inputs,
                      ReadArrayFile(files.inputs(), files.format(), options.memory_limit_bytes, options.pulse));
  const int64_t left = options.memory_limit_bytes - inputs.array.byte_size();
  LS_ASSIGN_OR_RETURN(ArrayFile labels, ReadArrayFile(files.labels(), files.format(), left, options.pulse));
  if (inputs.array.shape()[0] != labels.array.shape()[0]) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.path, " holds ", inputs.array.shape()[0], " inputs, ",
                                                   labels.path, " ", labels.array.shape()[0],
                                                   " labels; both must have one entry per sample"));
  }
  StoredData data;
  data.num_samples = inputs.array.shape()[0];
  data.features.push_back({.name = kInputsField, .array = 0, .sample = SampleShape(inputs.array.shape())});
  data.label = {.name = kLabelsField, .array = 1, .sample = SampleShape(labels.array.shape())};
  data.arrays.push_back(StoreArray(kInputsField, std::move(inputs)));
  data.arrays.push_back(StoreArray(kLabelsField, std::move(labels)));
  return data;
}

}  // namespace

StoredArray StoreArray(std::string name, ArrayFile file) {
  StoredArray stored{.name = std::move(name), .dtype = file.array.dtype(), .shape = file.array.shape()};
  stored.path = file.path;
  const auto shared = std::make_shared<const ArrayFile>(std::move(file));
  stored.elements = std::shared_ptr<const std::byte>(shared, shared->array.data());
  stored.element = [shared](int64_t i) {
    return shared->At(shared->data_offset + i * DTypeSize(shared->array.dtype()));
  };
  return stored;
}

absl::StatusOr<StoredData> ReadStoredData(const job::DataFiles& files, const ReadOptions& options) {
  if (files.has_tokens()) return ReadTokenFile(files.tokens(), files.sequence_length(), options);
  return ReadArrays(files, options);
}

}  // namespace lockstep::worker
