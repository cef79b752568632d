#include "worker/data/data_source.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/digest/sha256.h"
#include "common/job/normalisation.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/data/array_file.h"

namespace lockstep::worker {
namespace {

// Calls visit(T{}) with the C++ type of a stored element.
template <typename Visitor>
void WithElementType(DType dtype, Visitor visit) {
  switch (dtype) {
    case DType::kU8:
      return visit(uint8_t{});
    case DType::kI8:
      return visit(int8_t{});
    case DType::kU16:
      return visit(uint16_t{});
    case DType::kI16:
      return visit(int16_t{});
    case DType::kU32:
      return visit(uint32_t{});
    case DType::kI32:
      return visit(int32_t{});
    case DType::kU64:
      return visit(uint64_t{});
    case DType::kI64:
      return visit(int64_t{});
    case DType::kF32:
      return visit(float{});
    case DType::kF64:
      return visit(double{});
    default:
      LS_CHECK(false, "array files hold no other type");
  }
}

// float(x) * factor + offset per channel, rounded after each operation: both are made in float64 once, so that every
// machine computes the same bits.
struct Affine {
  std::vector<float> factor;
  std::vector<float> offset;
};

Affine MakeAffine(const Normalisation& normalisation) {
  Affine affine;
  const size_t channels = std::max(normalisation.mean.size(), normalisation.std.size());
  for (size_t c = 0; c < channels; ++c) {
    const double mean = normalisation.mean[normalisation.mean.size() == 1 ? 0 : c];
    const double std = normalisation.std[normalisation.std.size() == 1 ? 0 : c];
    affine.factor.push_back(static_cast<float>(normalisation.scale / std));
    affine.offset.push_back(static_cast<float>(-mean / std));
  }
  return affine;
}

Shape SampleShape(const Shape& shape) { return Shape(shape.begin() + 1, shape.end()); }

// One array of a data set and how it is delivered.
class Field {
 public:
  Field(ArrayFile file, TensorSpec spec, Affine affine)
      : file_(std::move(file)), spec_(std::move(spec)), affine_(std::move(affine)), sample_(NumElements(spec_.shape)) {}

  const TensorSpec& spec() const { return spec_; }
  const ArrayFile& file() const { return file_; }

  void Read(absl::Span<const int64_t> indices, absl::Span<std::byte> out) const {
    const int64_t bytes = sample_ * DTypeSize(spec_.dtype);
    LS_CHECK(static_cast<int64_t>(out.size()) == static_cast<int64_t>(indices.size()) * bytes, "out holds the samples");
    WithElementType(file_.array.dtype(), [&](auto tag) {
      using T = decltype(tag);
      const T* elements = reinterpret_cast<const T*>(file_.array.data());
      std::byte* to = out.data();
      for (const int64_t index : indices) {
        LS_CHECK(index >= 0 && index < file_.array.shape()[0], "the sample exists");
        Convert(elements + index * sample_, to);
        to += bytes;
      }
    });
  }

 private:
  template <typename T>
  void Convert(const T* from, std::byte* to) const {
    if (spec_.dtype == DType::kI64) {
      for (int64_t i = 0; i < sample_; ++i) {
        const int64_t value = static_cast<int64_t>(from[i]);
        std::memcpy(to + i * 8, &value, 8);
      }
      return;
    }
    float* out = reinterpret_cast<float*>(to);
    const int64_t channels = static_cast<int64_t>(affine_.factor.size());
    if (channels == 0) {
      for (int64_t i = 0; i < sample_; ++i) out[i] = static_cast<float>(from[i]);
      return;
    }
    const int64_t run = sample_ / channels;
    for (int64_t c = 0; c < channels; ++c) {
      const float factor = affine_.factor[static_cast<size_t>(c)];
      const float offset = affine_.offset[static_cast<size_t>(c)];
      for (int64_t i = c * run; i < (c + 1) * run; ++i) out[i] = static_cast<float>(from[i]) * factor + offset;
    }
  }

  ArrayFile file_;
  TensorSpec spec_;
  Affine affine_;  // empty: converted as it is
  int64_t sample_;
};

constexpr size_t kHashPieceBytes = size_t{8} << 20;

std::string ContentHash(const std::vector<Field>& fields, Pulse* pulse) {
  Sha256 hash;
  hash.Update("lockstep data 1\n");
  for (const Field& field : fields) {
    const Tensor& array = field.file().array;
    hash.Update(absl::StrCat(field.spec().name, " ", DTypeName(array.dtype()), " ", ShapeString(array.shape()), "\n"));
    const absl::string_view elements(reinterpret_cast<const char*>(array.data()),
                                     static_cast<size_t>(array.byte_size()));
    for (size_t at = 0; at < elements.size(); at += kHashPieceBytes) {
      const absl::string_view piece = elements.substr(at, kHashPieceBytes);
      hash.Update(piece);
      AdvancePulse(pulse, piece.size());
    }
  }
  return ToHex(hash.Finish());
}

class FileSource : public DataSource {
 public:
  FileSource(std::vector<Field> fields, Pulse* pulse) : fields_(std::move(fields)), hash_(ContentHash(fields_, pulse)) {
    for (const Field& field : fields_) specs_.push_back(field.spec());
  }

  int64_t num_samples() const override { return fields_[0].file().array.shape()[0]; }
  const std::vector<TensorSpec>& fields() const override { return specs_; }
  void Read(int field, absl::Span<const int64_t> indices, absl::Span<std::byte> out) const override {
    fields_[static_cast<size_t>(field)].Read(indices, out);
  }
  const std::string& content_hash() const override { return hash_; }

 private:
  std::vector<Field> fields_;
  std::vector<TensorSpec> specs_;
  std::string hash_;
};

// The model takes integers: tokens, indices.
absl::Status CheckIntegers(const ArrayFile& file, const FeedOptions& options) {
  if (IsFloating(file.array.dtype())) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": inputs of ", DTypeName(file.array.dtype()),
                                                   ", the model takes integers; save them as integers"));
  }
  if (options.normalisation == Normalisation{}) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(file.path, ": data.normalize has no meaning for the integers that the model takes; leave it out"));
}

absl::StatusOr<Field> MakeInputs(ArrayFile file, const FeedOptions& options) {
  const Shape stored = SampleShape(file.array.shape());
  const bool given = !options.inputs.empty();
  const Shape shape = given ? options.inputs[0].shape : stored;
  if (NumElements(shape) != NumElements(stored)) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": one input has the shape ", ShapeString(stored),
                                                   ", the model takes ", ShapeString(shape)));
  }
  if (given && options.inputs[0].dtype == DType::kI64) {
    LS_RETURN_IF_ERROR(CheckIntegers(file, options));
    return Field(std::move(file), options.inputs[0], Affine{});
  }
  const Normalisation& normalisation = options.normalisation;
  Affine affine;
  if (!(normalisation == Normalisation{})) affine = MakeAffine(normalisation);
  const int64_t channels = static_cast<int64_t>(affine.factor.size());
  if (channels > 1 && (shape.empty() || shape[0] != channels)) {
    return absl::InvalidArgumentError(absl::StrCat(file.path, ": data.normalize has ", channels,
                                                   " channels, one input of shape ", ShapeString(shape), " has not"));
  }
  return Field(std::move(file), {.name = "inputs", .dtype = DType::kF32, .shape = shape}, std::move(affine));
}

// Every label must be a class: a model cannot be asked for others, and a kernel must never meet one.
absl::Status CheckClasses(const ArrayFile& file, const FeedOptions& options) {
  const int64_t classes = options.label_classes;
  absl::Status status;
  WithElementType(file.array.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<T>) {
      status = absl::InvalidArgumentError(absl::StrCat(file.path, ": labels of ", DTypeName(file.array.dtype()),
                                                       ", this loss takes class numbers; save them as integers"));
    } else {
      const T* labels = reinterpret_cast<const T*>(file.array.data());
      for (int64_t i = 0; i < file.array.num_elements() && status.ok(); ++i) {
        if (options.ignore_label.has_value() && std::is_signed_v<T> &&
            static_cast<int64_t>(labels[i]) == *options.ignore_label) {
          continue;
        }
        if (std::is_signed_v<T> && labels[i] < 0 ? true
                                                 : static_cast<uint64_t>(labels[i]) >= static_cast<uint64_t>(classes)) {
          const int64_t offset = file.data_offset + i * static_cast<int64_t>(sizeof(T));
          status = absl::InvalidArgumentError(absl::StrCat(file.At(offset), "label ", i, " is ", +labels[i],
                                                           ", the model has the classes 0 to ", classes - 1));
        }
      }
    }
  });
  return status;
}

absl::StatusOr<Field> MakeLabels(ArrayFile file, const FeedOptions& options) {
  TensorSpec spec{.name = "labels", .dtype = DType::kF32, .shape = SampleShape(file.array.shape())};
  if (options.label_classes > 0) {
    LS_RETURN_IF_ERROR(CheckClasses(file, options));
    spec.dtype = DType::kI64;
  }
  return Field(std::move(file), std::move(spec), Affine{});
}

}  // namespace

FeedOptions FeedOptionsOf(const job::JobSpec& spec) {
  FeedOptions options;
  options.normalisation = MakeNormalisation(spec.data());
  if (spec.model().loss() == "softmax_cross_entropy") {
    // How many classes an imported model tells apart is known when it was imported.
    options.ignore_label = spec.model().ignore_index();
    options.label_classes = spec.model().has_onnx() ? kAnyClasses : spec.model().builtin().classes();
  }
  options.memory_limit_bytes = spec.data().memory().bytes();
  return options;
}

std::vector<TensorSpec> FieldsOf(absl::Span<const GraphInput> model_inputs) {
  std::vector<TensorSpec> fields;
  for (const GraphInput& input : model_inputs) {
    fields.push_back({input.name, input.dtype, SampleShape(input.shape)});
  }
  if (fields.size() == 1) fields[0].name = "inputs";
  return fields;
}

absl::StatusOr<std::unique_ptr<DataSource>> OpenDataSource(const job::DataFiles& files, const FeedOptions& options) {
  if (options.inputs.size() > 1) {
    return absl::UnimplementedError(
        absl::StrCat(files.inputs(), ": the model has ", options.inputs.size(), " inputs, and this format holds one"));
  }
  LS_ASSIGN_OR_RETURN(ArrayFile inputs,
                      ReadArrayFile(files.inputs(), files.format(), options.memory_limit_bytes, options.pulse));
  const int64_t left = options.memory_limit_bytes - inputs.array.byte_size();
  LS_ASSIGN_OR_RETURN(ArrayFile labels, ReadArrayFile(files.labels(), files.format(), left, options.pulse));
  if (inputs.array.shape()[0] != labels.array.shape()[0]) {
    return absl::InvalidArgumentError(absl::StrCat(inputs.path, " holds ", inputs.array.shape()[0], " inputs, ",
                                                   labels.path, " ", labels.array.shape()[0],
                                                   " labels; both must have one entry per sample"));
  }
  std::vector<Field> fields;
  LS_ASSIGN_OR_RETURN(Field input_field, MakeInputs(std::move(inputs), options));
  fields.push_back(std::move(input_field));
  LS_ASSIGN_OR_RETURN(Field label_field, MakeLabels(std::move(labels), options));
  fields.push_back(std::move(label_field));
  auto source = std::make_unique<FileSource>(std::move(fields), options.pulse);
  if (files.has_sha256() && files.sha256() != source->content_hash()) {
    return absl::InvalidArgumentError(
        absl::StrCat(files.inputs(), " and ", files.labels(), " are not the data of this job: their hash is ",
                     source->content_hash(), ", the job's sha256 ", files.sha256(), "; use the same files everywhere"));
  }
  return source;
}

}  // namespace lockstep::worker
