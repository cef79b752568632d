#include "worker/data/value_range.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "worker/data/element_types.h"

namespace lockstep::worker {
namespace {

// Bytes of an image reach far beyond 1; other small integers, ages and counts, may well be meant as they are.
constexpr double kHighestScaled = 16;
constexpr double kHighestByte = 255;

}  // namespace

ValueRange FindRange(const StoredArray& array) {
  ValueRange range;
  if (array.images != nullptr) return {0, kHighestByte};
  WithElementType(array.dtype, [&](auto tag) {
    using T = decltype(tag);
    const T* const elements = reinterpret_cast<const T*>(array.elements.get());
    const int64_t count = array.num_elements();
    using N = NumberOf<T>;
    N lowest = std::numeric_limits<N>::max();
    N highest = std::numeric_limits<N>::lowest();
    for (int64_t i = 0; i < count; ++i) {
      const N element = elements[i];
      if constexpr (std::is_floating_point_v<N>) {
        if (!std::isfinite(element)) continue;
      }
      lowest = std::min(lowest, element);
      highest = std::max(highest, element);
    }
    if (lowest > highest) return;
    range.lowest = static_cast<double>(lowest);
    range.highest = static_cast<double>(highest);
  });
  return range;
}

std::string ScaleText(const FieldScale& field, const ValueRange& range) {
  if (range.lowest > range.highest) return "";
  const std::string found =
      absl::StrCat(field.array->path, ": ", field.name, " has values from ", range.lowest, " to ", range.highest);
  const bool bytes = field.array->dtype == DType::kU8;
  const bool like_bytes = field.image && range.lowest >= 0 && range.highest <= kHighestByte;
  if (*field.normalisation == Normalisation{}) {
    if ((!bytes && !like_bytes) || range.highest <= kHighestScaled) return "";
    return absl::StrCat(found,
                        ", and they are fed as they are. If the model expects them scaled, set data.normalize: "
                        "{divide_by: 255}");
  }
  if (bytes || field.normalisation->scale > 1.0 / 128 || range.lowest < -1 || range.highest > 1) return "";
  return absl::StrCat(found, ", and data.normalize.divide_by divides them by ", 1 / field.normalisation->scale,
                      ". If they are scaled already, leave it out");
}

}  // namespace lockstep::worker
