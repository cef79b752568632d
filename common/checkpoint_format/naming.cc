#include "common/checkpoint_format/naming.h"

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "common/checkpoint_format/checkpoint_tensor.h"
#include "common/status/check.h"

namespace lockstep::layout {
namespace {

// The number behind `prefix`, when `name` is exactly how `print` would write it.
template <typename Print>
std::optional<int64_t> ParseNumbered(absl::string_view name, absl::string_view prefix, Print print) {
  absl::string_view digits = name;
  int64_t number = 0;
  if (!absl::ConsumePrefix(&digits, prefix) || digits.empty() || !absl::ascii_isdigit(digits[0])) return std::nullopt;
  if (!absl::SimpleAtoi(digits, &number) || print(number) != name) return std::nullopt;
  return number;
}

// "model", "optimizer/optimizer", "ema/model": the path of a group's files without ending.
std::string Stem(absl::string_view group) {
  if (group == kModelGroup) return std::string(group);
  if (group == kEmaGroup) return absl::StrCat(group, "/", kModelGroup);
  return absl::StrCat(group, "/", group);
}

}  // namespace

std::string StepName(int64_t step) {
  LS_CHECK(step >= 0, "steps count from 0");
  return absl::StrFormat("step-%09d", step);
}

std::optional<int64_t> ParseStepName(absl::string_view name) { return ParseNumbered(name, "step-", StepName); }

std::optional<int64_t> StepOfSetAside(absl::string_view name) {
  const size_t why = name.find('-', absl::string_view("step-").size());
  return why == absl::string_view::npos ? std::nullopt : ParseStepName(name.substr(0, why));
}

std::string CheckpointPath(int64_t step) { return absl::StrCat(kCheckpoints, "/", StepName(step)); }

std::string TermName(int64_t term) {
  LS_CHECK(term >= 0, "terms count from 1");
  return absl::StrFormat("term-%06d", term);
}

std::optional<int64_t> ParseTermName(absl::string_view name) { return ParseNumbered(name, "term-", TermName); }

std::string TermPath(int64_t term) { return absl::StrCat(kChief, "/", TermName(term)); }

std::string StagingPath(int64_t term) { return absl::StrCat(kStaging, "/", TermName(term)); }

std::string ShardPath(absl::string_view group, int index, int count) {
  LS_CHECK(index >= 0 && index < count, "a shard is one of its group");
  if (count == 1) return absl::StrCat(Stem(group), ".safetensors");
  return absl::StrFormat("%s-%05d-of-%05d.safetensors", Stem(group), index + 1, count);
}

std::string IndexPath(absl::string_view group) { return absl::StrCat(Stem(group), ".safetensors.index.json"); }

std::string MetagraphPath(absl::string_view fingerprint) { return absl::StrCat(kMetagraphs, "/", fingerprint, ".pb"); }

std::string PlanPath(absl::string_view hash) { return absl::StrCat(kPlans, "/", hash, ".pb"); }

}  // namespace lockstep::layout
