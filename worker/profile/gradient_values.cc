#include "worker/profile/gradient_values.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace lockstep::worker {
namespace {

// What every value that Differentiate makes is called, the loss's own gradient among them.
constexpr absl::string_view kGradientPrefix = "lockstep.grad";

}  // namespace

bool GradientValues::Reaches(const Node& node) {
  const auto is_gradient = [this](const std::string& value) {
    return absl::StartsWith(value, kGradientPrefix) || values_.count(value) > 0;
  };
  if (std::none_of(node.inputs.begin(), node.inputs.end(), is_gradient) &&
      std::none_of(node.outputs.begin(), node.outputs.end(), is_gradient)) {
    return false;
  }
  values_.insert(node.outputs.begin(), node.outputs.end());
  values_.erase("");  // an output that nobody asked for
  return true;
}

}  // namespace lockstep::worker
