#include "worker/data/field.h"

#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/data/data_source.h"
#include "worker/data/element_types.h"

namespace lockstep::worker {
namespace {

template <typename To, typename From>
void CopyAs(const From* from, int64_t count, std::byte* to) {
  for (int64_t i = 0; i < count; ++i) {
    const To value = static_cast<To>(from[i]);
    std::memcpy(to + i * static_cast<int64_t>(sizeof(To)), &value, sizeof(To));
  }
}

// The first stored element that `fits` does not hold for is an error. Every element of the array is looked at, once,
// whether or not a sample covers it.
template <typename Fits>
absl::Status CheckIntegers(const StoredArray& array, absl::string_view what, absl::string_view wanted, Fits fits) {
  absl::Status status;
  WithElementType(array.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<NumberOf<T>>) {
      status = absl::InvalidArgumentError(absl::StrCat(array.path, ": ", what, " of ", DTypeName(array.dtype), ", ",
                                                       wanted, "; save them as integers"));
    } else {
      const T* elements = reinterpret_cast<const T*>(array.elements.get());
      const int64_t count = array.num_elements();
      for (int64_t i = 0; i < count; ++i) {
        const bool beyond = std::is_same_v<T, uint64_t> && static_cast<uint64_t>(elements[i]) >> 63 != 0;
        if (!beyond && fits(static_cast<int64_t>(elements[i]))) continue;
        status = absl::InvalidArgumentError(
            absl::StrCat(array.element(i), what, " ", i, " is ", +elements[i], ", ", wanted));
        return;
      }
    }
  });
  return status;
}

// The integers of one type of input.
struct Integers {
  std::string name;
  int64_t lowest;
  int64_t highest;
  bool Hold(int64_t value) const { return value >= lowest && value <= highest; }
};

// REQUIRES: they all fit into an int64.
Integers IntegersOf(DType dtype) {
  Integers integers;
  const bool known = VisitInteger(dtype, [&]<typename T>(T) {
    using Limits = std::numeric_limits<T>;
    integers = {absl::StrCat(Limits::is_signed ? "int" : "uint", 8 * sizeof(T)), static_cast<int64_t>(Limits::min()),
                static_cast<int64_t>(Limits::max())};
  });
  LS_CHECK(known && dtype != DType::kU64, "an input of integers");
  return integers;
}

// Whether an input of `dtype`, integers, takes what is stored.
absl::Status CheckStoredIntegers(const StoredArray& array, const StoredField& stored, DType dtype,
                                 const std::optional<IndexRange>& range) {
  const Integers integers = IntegersOf(dtype);
  std::string wanted = absl::StrCat("the model takes ", integers.name, " here");
  if (range.has_value()) absl::StrAppend(&wanted, ", ", range->lowest, " to ", range->highest, " (", range->of, ")");
  return CheckIntegers(array, stored.tokens ? "token" : stored.name, wanted, [&](int64_t value) {
    return integers.Hold(value) && (!range.has_value() || range->Holds(value));
  });
}

}  // namespace

Field::Field(const StoredData& data, const StoredField& stored, TensorSpec spec)
    : elements_(data.arrays[stored.array].elements),
      images_(data.arrays[stored.array].images),
      stored_dtype_(data.arrays[stored.array].dtype),
      first_(stored.first),
      num_samples_(data.num_samples),
      spec_(std::move(spec)),
      sample_(NumElements(spec_.shape)) {}

absl::StatusOr<Field> Field::Feature(const StoredData& data, const StoredField& stored, TensorSpec spec,
                                     const std::optional<IndexRange>& range, const Normalisation& normalisation) {
  const StoredArray& array = data.arrays[stored.array];
  LS_CHECK(NumElements(spec.shape) == NumElements(stored.sample), "the sample has the model's shape");
  if (array.images != nullptr && spec.dtype != DType::kF32) {
    return absl::InvalidArgumentError(absl::StrCat(array.path, ": the model takes ", DTypeName(spec.dtype),
                                                   " here; images of image_decode: step feed float32 inputs"));
  }
  ChannelAffine affine;
  switch (spec.dtype) {
    case DType::kF32:
      if (!(normalisation == Normalisation{})) {
        LS_ASSIGN_OR_RETURN(affine, MakeAffine(normalisation, spec.shape, array.path));
      }
      break;
    case DType::kI64:
    case DType::kI32:
    case DType::kI16:
    case DType::kI8:
    case DType::kU32:
    case DType::kU16:
    case DType::kU8:
      LS_RETURN_IF_ERROR(CheckStoredIntegers(array, stored, spec.dtype, range));
      break;
    case DType::kBool:
      LS_RETURN_IF_ERROR(CheckIntegers(array, stored.name, "the model takes a bool, 0 or 1, here",
                                       [](int64_t value) { return value == 0 || value == 1; }));
      break;
    default:
      return absl::InvalidArgumentError(absl::StrCat(array.path, ": ", stored.name, " feeds an input of ",
                                                     DTypeName(spec.dtype),
                                                     "; float32, integers of up to 64 bits and bool can be fed"));
  }
  Field field(data, stored, std::move(spec));
  field.affine_ = std::move(affine);
  return field;
}

// Every label must be a class: a model cannot be asked for others, and a kernel must never meet one.
absl::StatusOr<Field> Field::Label(const StoredData& data, int64_t classes, std::optional<int64_t> ignored) {
  const StoredField& stored = *data.label;
  TensorSpec spec{.name = kLabelsField, .dtype = DType::kF32, .shape = stored.sample};
  if (classes > 0 || stored.tokens) {
    if (classes == 0) classes = int64_t{1} << 32;
    const std::string wanted = absl::StrCat(
        classes == kAnyClasses ? "classes count from 0" : absl::StrCat("the model has the classes 0 to ", classes - 1),
        ignored.has_value() ? absl::StrCat(", and ", *ignored, " is left out of the loss") : "");
    LS_RETURN_IF_ERROR(
        CheckIntegers(data.arrays[stored.array], stored.tokens ? "token" : "label", wanted,
                      [&](int64_t label) { return (label >= 0 && label < classes) || label == ignored; }));
    spec.dtype = DType::kI64;
  }
  return Field(data, stored, std::move(spec));
}

absl::StatusOr<ChannelAffine> Field::MakeAffine(const Normalisation& normalisation, const Shape& shape,
                                                absl::string_view path) {
  const size_t channels = std::max(normalisation.mean.size(), normalisation.std.size());
  if (channels > 1 && (shape.empty() || shape[0] != static_cast<int64_t>(channels))) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": data.normalize has ", channels,
                                                   " channels, one input of shape ", ShapeString(shape), " has not"));
  }
  return MakeChannelAffine(normalisation);
}

absl::Status Field::Read(absl::Span<const int64_t> indices, const RegionOfSample* choose,
                         absl::Span<std::byte> out) const {
  const int64_t bytes = sample_ * DTypeSize(spec_.dtype);
  LS_CHECK(static_cast<int64_t>(out.size()) == static_cast<int64_t>(indices.size()) * bytes, "out holds the samples");
  if (images_ != nullptr) {
    return images_->Read(indices, choose, [&](size_t i, const uint8_t* image) {
      Convert(image, out.data() + static_cast<int64_t>(i) * bytes);
    });
  }
  WithElementType(stored_dtype_, [&](auto tag) {
    using T = decltype(tag);
    const T* elements = reinterpret_cast<const T*>(elements_.get()) + first_;
    std::byte* to = out.data();
    for (const int64_t index : indices) {
      LS_CHECK(index >= 0 && index < num_samples_, "the sample exists");
      Convert(elements + index * sample_, to);
      to += bytes;
    }
  });
  return absl::OkStatus();
}

template <typename T>
void Field::Convert(const T* from, std::byte* to) const {
  if (spec_.dtype == DType::kBool) return CopyAs<uint8_t>(from, sample_, to);
  if (VisitInteger(spec_.dtype, [&]<typename To>(To) { CopyAs<To>(from, sample_, to); })) return;
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

}  // namespace lockstep::worker
