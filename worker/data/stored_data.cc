#include "worker/data/stored_data.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/array_header.h"
#include "worker/data/byte_source.h"
#include "worker/data/containers.h"
#include "worker/data/image_folder.h"
#include "worker/data/many_files.h"
#include "worker/data/token_file.h"

namespace lockstep::worker {
namespace {

Shape SampleShape(const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); }

// A file of inputs, IDX or npy.
absl::StatusOr<StoredData> ReadInputs(const job::DataFiles& files, const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(ArrayFile inputs,
                      ReadArrayFile(files.inputs(), files.format(), options.memory_limit_bytes, options.pulse));
  StoredData data;
  data.num_samples = inputs.array.shape()[0];
  data.features.push_back({.name = kInputsField, .array = 0, .sample = SampleShape(inputs.array.shape())});
  data.arrays.push_back(StoreArray(kInputsField, std::move(inputs)));
  return data;
}

// The same with a file of labels beside it.
absl::StatusOr<StoredData> ReadArrays(const job::DataFiles& files, const ReadOptions& options) {
  LS_ASSIGN_OR_RETURN(StoredData data, ReadInputs(files, options));
  const StoredArray& inputs = data.arrays[0];
  const int64_t left = options.memory_limit_bytes - inputs.num_elements() * DTypeSize(inputs.dtype);
  LS_ASSIGN_OR_RETURN(ArrayFile labels, ReadArrayFile(files.labels(), files.format(), left, options.pulse));
  if (data.num_samples != labels.array.shape()[0]) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.path, " holds ", data.num_samples, " inputs, ", labels.path,
                                                   " ", labels.array.shape()[0],
                                                   " labels; both must have one entry per sample"));
  }
  data.label = {.name = kLabelsField, .array = 1, .sample = SampleShape(labels.array.shape())};
  data.arrays.push_back(StoreArray(kLabelsField, std::move(labels)));
  return data;
}

// The format of a file that holds inputs, and labels with them where there have to be `labels`, by its first bytes.
absl::StatusOr<job::DataFiles::Format> FindFormat(const std::string& path, bool labels) {
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, /*pulse=*/nullptr));
  std::string start(12, '\0');
  LS_ASSIGN_OR_RETURN(const size_t got,
                      source.ReadSome(absl::MakeSpan(reinterpret_cast<std::byte*>(start.data()), start.size())));
  start.resize(got);
  if (absl::StartsWith(start, "PK\x03\x04") || absl::StartsWith(start, "PK\x05\x06")) {
    return job::DataFiles::FORMAT_NPZ;
  }
  if (LooksLikeTfRecord(start)) return job::DataFiles::FORMAT_TFRECORD;
  Magic magic{};
  std::memcpy(magic.data(), start.data(), std::min(start.size(), magic.size()));
  if (IsNpyMagic(magic) || IsIdxMagic(magic)) {
    if (!labels) return IsNpyMagic(magic) ? job::DataFiles::FORMAT_NPY : job::DataFiles::FORMAT_IDX;
    return absl::InvalidArgumentError(absl::StrCat(path, ": holds one array; name the file of its labels with labels"));
  }
  const auto control = [](char c) { return c >= 0 && c < ' ' && c != '\n' && c != '\r' && c != '\t'; };
  if (start.empty() || std::any_of(start.begin(), start.end(), control)) {
    return source.Bad(0, "neither an npz archive, a TFRecord file nor a CSV table");
  }
  return job::DataFiles::FORMAT_CSV;
}

// `alone`: it is the only one.
absl::StatusOr<StoredData> ReadOne(const job::DataFiles& files, const ReadOptions& options, bool alone) {
  if (files.has_tokens()) return ReadTokenFile(files.tokens(), files.sequence_length(), options, alone);
  if (files.has_labels()) return ReadArrays(files, options);
  std::error_code unknown;
  job::DataFiles::Format format = files.format();
  const bool unsaid = format == job::DataFiles::FORMAT_AUTO || !files.has_format();
  if (std::filesystem::is_directory(files.inputs(), unknown)) {
    if (!alone) return absl::InvalidArgumentError(absl::StrCat(files.inputs(), ": a pattern cannot name folders"));
    format = job::DataFiles::FORMAT_IMAGES;
  } else if (unsaid) {
    LS_ASSIGN_OR_RETURN(format, FindFormat(files.inputs(), options.labels == Labels::kRequired));
  }
  switch (format) {
    case job::DataFiles::FORMAT_NPZ:
      return ReadNpz(files, options);
    case job::DataFiles::FORMAT_CSV:
      return ReadCsv(files, options);
    case job::DataFiles::FORMAT_TFRECORD:
      return ReadTfRecord(files, options);
    case job::DataFiles::FORMAT_IMAGES:
      return ReadImageFolder(files, options);
    default:
      return options.labels == Labels::kRequired ? ReadArrays(files, options) : ReadInputs(files, options);
  }
}

}  // namespace

int64_t StoredArray::held_bytes() const {
  return images != nullptr ? images->held_bytes() : num_elements() * DTypeSize(dtype);
}

StoredArray StoreArray(std::string name, ArrayFile file) {
  StoredArray stored{.name = std::move(name), .dtype = file.array.dtype(), .shape = file.array.shape()};
  stored.path = file.path;
  const auto array = std::make_shared<Tensor>(std::move(file.array));
  stored.elements = std::shared_ptr<std::byte>(array, array->data());
  // The place outlives the elements where several files become one array.
  const auto place = std::make_shared<ArrayFile>(std::move(file));
  stored.element = [place, size = DTypeSize(stored.dtype)](int64_t i) {
    return place->At(place->data_offset + i * size);
  };
  return stored;
}

absl::StatusOr<StoredData> ReadStoredData(const job::DataFiles& files, const ReadOptions& options) {
  job::DataFiles wanted = files;
  if (options.labels == Labels::kNone) wanted.clear_labels();
  LS_ASSIGN_OR_RETURN(const std::vector<job::DataFiles> each, ExpandPatterns(wanted));
  std::vector<StoredData> parts;
  ReadOptions left = options;
  for (const job::DataFiles& file : each) {
    LS_ASSIGN_OR_RETURN(parts.emplace_back(), ReadOne(file, left, each.size() == 1));
    for (const StoredArray& array : parts.back().arrays) {
      left.memory_limit_bytes -= array.held_bytes();
    }
  }
  LS_ASSIGN_OR_RETURN(StoredData data, Concatenate(std::move(parts)));
  // Tokens go on from one file to the next.
  if (files.has_tokens()) data.num_samples = TokenSamples(data.arrays[0].shape[0], files.sequence_length(), options);
  if (data.num_samples > 0) return data;
  return absl::InvalidArgumentError(
      absl::StrCat(files.tokens(), ": the files hold ", data.arrays[0].shape[0], " tokens, too few for one sample"));
}

}  // namespace lockstep::worker
