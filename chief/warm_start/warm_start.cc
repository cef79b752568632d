#include "chief/warm_start/warm_start.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/warm_start/match_weights.h"
#include "chief/warm_start/open_weights.h"
#include "chief/warm_start/weight_source.h"
#include "common/status/status_macros.h"
#include "common/tensor/half.h"

namespace lockstep::chief {
namespace {

// A storage does not know which key of the job named it.
absl::Status NamingTheKey(const absl::Status& status) {
  if (status.ok() || absl::StartsWith(status.message(), "model.from")) return status;
  return absl::Status(status.code(), absl::StrCat("model.from: ", status.message()));
}

// The tensors of the model as the layout has them.
std::vector<WantedTensor> WantedOf(const StateLayout& layout) {
  std::vector<WantedTensor> wanted;
  for (const StateTensor& tensor : layout.tensors) {
    if (tensor.group != StateGroup::kModel) continue;
    const bool is_alias = tensor.kind == StateKind::kAlias;
    wanted.push_back({.spec = tensor.spec,
                      .same_as = is_alias ? tensor.variable : "",
                      .of_job = is_alias && tensor.variable == kStepCounterName});
  }
  return wanted;
}

WeightRules RulesOf(const job::WarmStart& from) {
  return {.only = {from.only().begin(), from.only().end()},
          .rename = {from.rename().begin(), from.rename().end()},
          .allow_missing = {from.allow_missing().begin(), from.allow_missing().end()},
          .allow_unused = {from.allow_unused().begin(), from.allow_unused().end()}};
}

// A source, and what of it the model takes.
struct Matched {
  std::unique_ptr<WeightSource> source;
  WeightMatch match;
};

absl::StatusOr<Matched> Match(const job::WarmStart& from, const StateLayout& layout) {
  absl::StatusOr<std::unique_ptr<WeightSource>> source = OpenWeights(from);
  LS_RETURN_IF_ERROR(NamingTheKey(source.status()));
  const std::vector<WantedTensor> wanted = WantedOf(layout);
  std::map<std::string, size_t> second_names;
  for (const WantedTensor& tensor : wanted) {
    const std::optional<size_t> found = (*source)->FindSecondName(tensor.spec.name);
    if (found.has_value()) second_names.emplace(tensor.spec.name, *found);
  }
  LS_ASSIGN_OR_RETURN(WeightMatch match, MatchWeights(wanted, (*source)->tensors(), RulesOf(from),
                                                      (*source)->description(), second_names));
  return Matched{*std::move(source), std::move(match)};
}

WarmStartReport ReportOf(const WeightSource& source, const WeightMatch& match) {
  WarmStartReport report{
      .source = source.description(), .missing = match.missing, .left_out = match.left_out, .unused = match.unused};
  for (const auto& [name, index] : match.taken) report.taken.push_back(name);
  return report;
}

absl::Span<char> CharsOf(Tensor& tensor) {
  return {reinterpret_cast<char*>(tensor.data()), static_cast<size_t>(tensor.byte_size())};
}

// The source's tensor in the type of the model's: the same, or F32 for F16 and BF16.
absl::Status ReadAs(const WeightSource& source, size_t index, Tensor& out) {
  const TensorSpec& there = source.tensors()[index];
  if (there.dtype == out.dtype()) return source.Read(index, CharsOf(out));
  LS_ASSIGN_OR_RETURN(Tensor narrow, Tensor::Create(there.dtype, there.shape));
  LS_RETURN_IF_ERROR(source.Read(index, CharsOf(narrow)));
  const auto* const bits = reinterpret_cast<const uint16_t*>(narrow.data());
  const absl::Span<float> wide = out.elements<float>();
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = WidenHalf(there.dtype, bits[i]);
  return absl::OkStatus();
}

class Weights {
 public:
  Weights(const StateLayout& layout, std::vector<Tensor>& state) : layout_(layout), state_(state) {}

  absl::Status Take(const WeightSource& source, const WeightMatch& match) {
    for (const auto& [name, index] : match.taken) {
      const auto position = static_cast<size_t>(layout_.Find(name));
      LS_RETURN_IF_ERROR(ReadAs(source, index, state_[position]));
    }
    LS_RETURN_IF_ERROR(SpreadToSecondNames(source, match));
    SpreadToAverages();
    return absl::OkStatus();
  }

 private:
  // One of a tensor's names brings the bytes for all; two of them must agree.
  absl::Status SpreadToSecondNames(const WeightSource& source, const WeightMatch& match) {
    std::map<std::string, std::string> from;  // by the first name: a name that the source has
    for (const auto& [name, index] : match.taken) {
      const auto [first, is_new] = from.emplace(FirstNameOf(name), name);
      if (is_new || BitEqual(StateOf(first->second), StateOf(name))) continue;
      return absl::InvalidArgumentError(absl::StrCat("model.from: ", source.description(), " holds other bytes for ",
                                                     first->second, " than for ", name,
                                                     ", which are one tensor of this model; leave one of them out with "
                                                     "model.from.rename and model.from.allow_unused"));
    }
    for (const StateTensor& tensor : layout_.tensors) {
      if (tensor.group != StateGroup::kModel) continue;
      const auto served = from.find(FirstNameOf(tensor.spec.name));
      if (served != from.end() && served->second != tensor.spec.name) Copy(served->second, tensor.spec.name);
    }
    return absl::OkStatus();
  }

  // An average begins as what it is of.
  void SpreadToAverages() {
    for (const StateTensor& tensor : layout_.tensors) {
      if (tensor.group != StateGroup::kModel) continue;
      const std::string average = EmaName(tensor.spec.name);
      if (layout_.Find(average) >= 0) Copy(tensor.spec.name, average);
    }
  }

  std::string FirstNameOf(const std::string& name) const {
    const StateTensor& tensor = layout_.tensors[static_cast<size_t>(layout_.Find(name))];
    return tensor.kind == StateKind::kAlias ? tensor.variable : name;
  }
  Tensor& StateOf(const std::string& name) { return state_[static_cast<size_t>(layout_.Find(name))]; }
  void Copy(const std::string& from, const std::string& to) { StateOf(to) = StateOf(from).Clone(); }

  const StateLayout& layout_;
  std::vector<Tensor>& state_;
};

void AppendNames(absl::string_view title, const std::vector<std::string>& names, std::string& text) {
  if (names.empty()) return;
  absl::StrAppend(&text, title, " (", names.size(), "):\n");
  for (const std::string& name : names) absl::StrAppend(&text, "  ", name, "\n");
}

}  // namespace

std::string WarmStartReport::Line() const {
  const size_t all = taken.size() + missing.size() + left_out.size();
  std::string line = absl::StrCat(taken.size(), " of ", all, " tensors of the model begin as in ", source);
  if (!missing.empty()) absl::StrAppend(&line, "; ", missing.size(), " that it lacks begin anew");
  if (!left_out.empty()) absl::StrAppend(&line, "; ", left_out.size(), " are left out");
  if (!unused.empty()) absl::StrAppend(&line, "; ", unused.size(), " of it are not used");
  return line;
}

std::string WarmStartReport::Text() const {
  std::string text = absl::StrCat(Line(), "\n");
  AppendNames("begin as there", taken, text);
  AppendNames("begin anew, because it lacks them", missing, text);
  AppendNames("begin anew, because model.from.only leaves them out", left_out, text);
  AppendNames("not used", unused, text);
  return text;
}

absl::StatusOr<WarmStartReport> CheckWarmStart(const job::WarmStart& from, const StateLayout& layout) {
  LS_ASSIGN_OR_RETURN(const Matched matched, Match(from, layout));
  return ReportOf(*matched.source, matched.match);
}

absl::StatusOr<WarmStartReport> BeginFrom(const job::WarmStart& from, const StateLayout& layout,
                                          std::vector<Tensor>& state) {
  LS_ASSIGN_OR_RETURN(const Matched matched, Match(from, layout));
  LS_RETURN_IF_ERROR(NamingTheKey(Weights(layout, state).Take(*matched.source, matched.match)));
  return ReportOf(*matched.source, matched.match);
}

ExitCode WarmStartExitCode(const absl::Status& status) {
  if (absl::IsDataLoss(status)) return kExitBadData;
  if (absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status)) return kExitStorage;
  return kExitBadJob;
}

}  // namespace lockstep::chief
