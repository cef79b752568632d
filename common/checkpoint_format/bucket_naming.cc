#include "common/checkpoint_format/bucket_naming.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/naming.h"

namespace lockstep::layout {

std::string BucketCheckpointPath(int64_t step, int64_t term, absl::string_view nonce) {
  return absl::StrCat(CheckpointPath(step), ".t", term, "-", nonce);
}

std::optional<CheckpointFolder> ParseCheckpointFolder(absl::string_view name) {
  const size_t dot = name.find('.');
  const std::optional<int64_t> step = ParseStepName(name.substr(0, dot));
  if (!step.has_value()) return std::nullopt;
  if (dot == absl::string_view::npos) return CheckpointFolder{*step, std::nullopt};
  absl::string_view rest = name.substr(dot);
  if (!absl::ConsumePrefix(&rest, ".t")) return std::nullopt;
  const size_t dash = rest.find('-');
  if (dash == absl::string_view::npos) return std::nullopt;
  const absl::string_view digits = rest.substr(0, dash);
  const absl::string_view nonce = rest.substr(dash + 1);
  int64_t term = 0;
  if (!absl::SimpleAtoi(digits, &term) || term < 1 || absl::StrCat(term) != digits) return std::nullopt;
  if (nonce.empty() || !std::all_of(nonce.begin(), nonce.end(), absl::ascii_isalnum)) return std::nullopt;
  return CheckpointFolder{*step, term};
}

std::string AlivePath(int64_t term) { return absl::StrCat(kAlive, "-", TermName(term)); }

}  // namespace lockstep::layout
