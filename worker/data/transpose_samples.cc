#include "worker/data/transpose_samples.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status/check.h"
#include "common/tensor/shape.h"
#include "worker/data/element_types.h"

namespace lockstep::worker {
namespace {

// One loop over a dimension of the result, which is written in order.
struct Loop {
  int64_t count = 0;
  int64_t step = 0;  // in the stored sample
};

// Writes the loops from `depth` on; returns where the next element goes.
template <typename T>
T* Gather(const std::vector<Loop>& loops, size_t depth, const T* from, T* to) {
  const Loop& loop = loops[depth];
  if (depth + 1 < loops.size()) {
    for (int64_t i = 0; i < loop.count; ++i) to = Gather(loops, depth + 1, from + i * loop.step, to);
    return to;
  }
  for (int64_t i = 0; i < loop.count; ++i) *to++ = from[i * loop.step];
  return to;
}

}  // namespace

void TransposeSamples(StoredArray& array, const SampleView& view, Pulse* pulse) {
  const std::vector<int64_t> strides = RowMajorStrides(view.stored);
  std::vector<Loop> loops;
  for (const int64_t from : view.order) {
    loops.push_back({view.stored[static_cast<size_t>(from)], strides[static_cast<size_t>(from)]});
  }
  const int64_t elements = NumElements(view.stored);
  LS_CHECK(elements == 0 ? array.num_elements() == 0 : array.num_elements() % elements == 0,
           "samples fill the array from the first element on");
  WithElementType(array.dtype, [&](auto tag) {
    using T = decltype(tag);
    std::vector<T> sample(static_cast<size_t>(elements));
    T* const begin = reinterpret_cast<T*>(array.elements.get());
    for (T* at = begin; at < begin + array.num_elements(); at += elements) {
      std::copy_n(at, elements, sample.begin());
      Gather(loops, 0, sample.data(), at);
      AdvancePulse(pulse, static_cast<size_t>(elements) * sizeof(T));
    }
  });
  array.element = [loops, elements, stored = std::move(array.element)](int64_t i) {
    int64_t place = i - i % elements;
    int64_t rest = i % elements;
    for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
      place += rest % loop->count * loop->step;
      rest /= loop->count;
    }
    return stored(place);
  };
}

}  // namespace lockstep::worker
