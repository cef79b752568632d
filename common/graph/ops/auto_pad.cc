#include "common/graph/ops/auto_pad.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/graph/ops/window.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

using Ints = std::vector<int64_t>;

struct Window {
  Ints kernel;
  Ints strides;
  Ints dilations;
  Ints output_padding;
  Ints output_shape;
  std::string auto_pad = "NOTSET";
};

// Takes a list from `raw`; `fallback` repeated where it is not there.
absl::StatusOr<Ints> List(const RawAttributes& raw, const std::string& name, size_t size, int64_t fallback) {
  const auto found = raw.find(name);
  if (found == raw.end()) return Ints(size, fallback);
  const auto* list = std::get_if<Ints>(&found->second);
  if (list == nullptr || list->size() != size) {
    return absl::InvalidArgumentError(absl::StrCat("attribute '", name, "' has to be a list of ", size, " integers"));
  }
  return *list;
}

absl::StatusOr<Window> ReadWindow(const Shape& input, const Shape* weights, const RawAttributes& raw) {
  if (input.size() < 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("input has shape ", ShapeString(input), "; the op takes [batch, channels, spatial dimensions]"));
  }
  const size_t rank = input.size() - 2;
  Window window;
  if (weights != nullptr && weights->size() == input.size() && raw.count("kernel_shape") == 0) {
    window.kernel.assign(weights->begin() + 2, weights->end());
  } else {
    LS_ASSIGN_OR_RETURN(window.kernel, List(raw, "kernel_shape", rank, 1));
  }
  LS_ASSIGN_OR_RETURN(window.strides, List(raw, "strides", rank, 1));
  LS_ASSIGN_OR_RETURN(window.dilations, List(raw, "dilations", rank, 1));
  LS_ASSIGN_OR_RETURN(window.output_padding, List(raw, "output_padding", rank, 0));
  if (raw.count("output_shape") != 0) {
    LS_ASSIGN_OR_RETURN(window.output_shape, List(raw, "output_shape", rank, 0));
  }
  if (const auto found = raw.find("auto_pad"); found != raw.end()) {
    const auto* name = std::get_if<std::string>(&found->second);
    window.auto_pad = name == nullptr ? "" : *name;
    const auto known = {"NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"};
    if (std::find(known.begin(), known.end(), window.auto_pad) == known.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("auto_pad '", window.auto_pad, "' is neither NOTSET, VALID, SAME_UPPER nor SAME_LOWER"));
    }
  }
  return window;
}

// The padding of dimension `d`, both ends together.
int64_t TotalPadding(const Window& w, bool transposed, int64_t size, size_t d) {
  const int64_t extent = (w.kernel[d] - 1) * w.dilations[d] + 1;
  if (transposed) {
    const int64_t wanted = w.output_shape.empty() ? size * w.strides[d] : w.output_shape[d];
    return w.strides[d] * (size - 1) + w.output_padding[d] + extent - wanted;
  }
  const int64_t windows = (size + w.strides[d] - 1) / w.strides[d];
  return std::max<int64_t>(0, (windows - 1) * w.strides[d] + extent - size);
}

}  // namespace

absl::Status FillWindow(OpType op, const Shape& input, const Shape* weights, RawAttributes* raw) {
  const bool transposed = op == OpType::kConvTranspose;
  if (op != OpType::kConv && op != OpType::kMaxPool && op != OpType::kAveragePool && !transposed) {
    return absl::OkStatus();
  }
  LS_ASSIGN_OR_RETURN(const Window window, ReadWindow(input, weights, *raw));
  raw->insert_or_assign("kernel_shape", window.kernel);
  raw->erase("auto_pad");
  raw->erase("output_shape");
  const size_t rank = window.kernel.size();
  if (window.auto_pad == "VALID") raw->insert_or_assign("pads", Ints(2 * rank, 0));
  if (window.output_shape.empty() && (window.auto_pad == "VALID" || window.auto_pad == "NOTSET")) {
    return absl::OkStatus();
  }
  LS_RETURN_IF_ERROR(CheckWindow(window.kernel, window.strides, Ints(2 * rank, 0), window.dilations));
  Ints pads(2 * rank);
  Ints output_padding = window.output_padding;
  for (size_t d = 0; d < rank; ++d) {
    if (output_padding[d] < 0 || output_padding[d] > kMostExtent) {
      return absl::InvalidArgumentError(absl::StrCat("output_padding ", output_padding[d], " is out of range"));
    }
    const int64_t wanted = window.output_shape.empty() ? 0 : window.output_shape[d];
    if (input[2 + d] > kMostExtent || wanted < 0 || wanted > kMostExtent) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", ShapeString(input), " or output_shape ", wanted, " is too large"));
    }
    int64_t total = TotalPadding(window, transposed, input[2 + d], d);
    // A shape that is larger than what the windows reach is filled up behind.
    output_padding[d] -= std::min<int64_t>(total, 0);
    total = std::max<int64_t>(total, 0);
    const bool more_in_front = window.auto_pad == "SAME_LOWER" || window.auto_pad == "NOTSET";
    pads[d] = more_in_front ? total - total / 2 : total / 2;
    pads[rank + d] = total - pads[d];
  }
  raw->insert_or_assign("pads", std::move(pads));
  if (transposed) raw->insert_or_assign("output_padding", std::move(output_padding));
  return absl::OkStatus();
}

}  // namespace lockstep
