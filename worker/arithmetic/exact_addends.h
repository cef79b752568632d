// A rank's contribution to exact sums (exact_sum.h), and the exponents of their elements.
//
// Threading: immutable.
#ifndef LOCKSTEP_WORKER_ARITHMETIC_EXACT_ADDENDS_H_
#define LOCKSTEP_WORKER_ARITHMETIC_EXACT_ADDENDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace lockstep::worker {

// One addend per element: either fixed-point integers, which may be partial sums, or float32 values, which the adder
// quantises. The sum has the same bits either way; values take half the bytes. One of the two spans is empty.
struct ExactAddends {
  absl::Span<const int64_t> integers;
  absl::Span<const float> values;

  size_t size() const { return integers.size() + values.size(); }
  size_t element_bytes() const { return values.empty() ? sizeof(int64_t) : sizeof(float); }
  const char* bytes() const {
    return values.empty() ? reinterpret_cast<const char*>(integers.data())
                          : reinterpret_cast<const char*>(values.data());
  }
  // REQUIRES: begin + count <= size().
  ExactAddends subspan(size_t begin, size_t count) const {
    if (values.empty()) return {.integers = integers.subspan(begin, count)};
    return {.values = values.subspan(begin, count)};
  }
};

// Elements [begin, begin + size) are summed with this exponent.
struct ExactRun {
  int64_t begin = 0;
  int64_t size = 0;
  int32_t exponent = 0;

  int64_t end() const { return begin + size; }
  friend bool operator==(const ExactRun&, const ExactRun&) = default;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ARITHMETIC_EXACT_ADDENDS_H_
