#include "worker/data/non_finite.h"

#include <cmath>
#include <type_traits>

#include "absl/strings/str_cat.h"
#include "worker/data/element_types.h"

namespace lockstep::worker {

std::optional<NonFinite> FindNonFinite(const StoredArray& array) {
  NonFinite found;
  WithElementType(array.dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_floating_point_v<NumberOf<T>>) {
      const T* elements = reinterpret_cast<const T*>(array.elements.get());
      for (int64_t i = 0; i < array.num_elements(); ++i) {
        const NumberOf<T> element = elements[i];
        if (std::isfinite(element)) continue;
        found.any_nan = found.any_nan || std::isnan(element);
        if (found.count++ == 0) found.first = absl::StrCat(array.element(i), "element ", i, " is ", element);
      }
    }
  });
  return found.count == 0 ? std::nullopt : std::optional(found);
}

}  // namespace lockstep::worker
