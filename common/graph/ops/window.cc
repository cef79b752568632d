#include "common/graph/ops/window.h"

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "common/status/status_macros.h"
#include "common/tensor/shape.h"

namespace lockstep {
namespace {

// Far above any real setting, and low enough that products of three cannot overflow.
constexpr int64_t kLimit = int64_t{1} << 20;

absl::Status CheckList(absl::string_view name, const std::vector<int64_t>& list, size_t size, int64_t low) {
  if (list.size() != size) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, " ", ShapeString(list), " has ", list.size(), " entries, expected ", size));
  }
  for (const int64_t value : list) {
    if (value < low || value > kLimit) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, " ", ShapeString(list), " is out of range: entries lie between ", low, " and ", kLimit));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckWindow(const std::vector<int64_t>& kernel_shape, const std::vector<int64_t>& strides,
                         const std::vector<int64_t>& pads, const std::vector<int64_t>& dilations) {
  const size_t rank = kernel_shape.size();
  if (rank < 1 || rank > 3) {
    return absl::InvalidArgumentError(absl::StrCat("kernel_shape ", ShapeString(kernel_shape), " has ", rank,
                                                   " entries; windows have one to three spatial dimensions"));
  }
  LS_RETURN_IF_ERROR(CheckList("kernel_shape", kernel_shape, rank, 1));
  LS_RETURN_IF_ERROR(CheckList("strides", strides, rank, 1));
  LS_RETURN_IF_ERROR(CheckList("pads", pads, 2 * rank, 0));
  return CheckList("dilations", dilations, rank, 1);
}

absl::StatusOr<int64_t> WindowCount(int64_t size, int64_t kernel, int64_t stride, int64_t pad_begin, int64_t pad_end,
                                    int64_t dilation, bool ceil_mode) {
  if (size < 0 || size > kMostExtent) {
    return absl::InvalidArgumentError(absl::StrCat("a dimension of ", size, " is negative or too large"));
  }
  const int64_t extent = (kernel - 1) * dilation + 1;
  const int64_t room = size + pad_begin + pad_end - extent;
  if (room < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a window of ", extent, " does not fit into ", size,
                                                   " elements with padding ", pad_begin, " + ", pad_end));
  }
  int64_t count = (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
  if (ceil_mode && (count - 1) * stride >= size + pad_begin) --count;
  return count;
}

}  // namespace lockstep
