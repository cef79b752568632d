// An equation of Einstein's notation, such as "bij,bjk->bik" or "...ii->...i", with the shapes that it is applied to.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_GRAPH_OPS_EINSUM_EQUATION_H_
#define LOCKSTEP_COMMON_GRAPH_OPS_EINSUM_EQUATION_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace lockstep {

// Every dimension has a label, a number from 0; the result's labels come first, in the result's order. A label's extent
// is that of the dimensions which carry it; dimensions of 1 broadcast to it.
struct EinsumTerms {
  std::vector<int64_t> extents;               // by label
  std::vector<std::vector<size_t>> operands;  // the labels of each operand's dimensions; one may occur twice
  size_t output_rank = 0;

  Shape output_shape() const { return Shape(extents.begin(), extents.begin() + static_cast<int64_t>(output_rank)); }
};

// Without "->", the result has the ellipsis' dimensions and then every letter that stands once, in alphabetical order.
// InvalidArgument when the equation is malformed or does not fit the shapes.
absl::StatusOr<EinsumTerms> ParseEinsum(absl::string_view equation, absl::Span<const Shape> shapes);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_GRAPH_OPS_EINSUM_EQUATION_H_
