#include "common/checkpoint_format/checkpoint_tensor.h"

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace lockstep {
namespace {

constexpr absl::string_view kMetadataKey = "__metadata__";

bool IsUtf8(absl::string_view text) {
  try {
    (void)nlohmann::json(std::string(text)).dump();
    return true;
  } catch (const nlohmann::json::exception&) {
    return false;
  }
}

}  // namespace

absl::Status CheckTensorName(absl::string_view name) {
  if (!name.empty() && name != kMetadataKey && !absl::StrContains(name, absl::string_view("\0", 1)) && IsUtf8(name)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("'", absl::CHexEscape(name), "' cannot name a tensor in a safetensors file"));
}

}  // namespace lockstep
