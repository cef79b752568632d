#include "chief/warm_start/match_weights.h"

#include <fnmatch.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/graph/state_names.h"
#include "common/tensor/dtype.h"

namespace lockstep::chief {
namespace {

// The name that `pattern` -> `replacement` makes of `name`; nullopt: the pattern does not match.
std::optional<std::string> Renamed(absl::string_view name, absl::string_view pattern, absl::string_view replacement) {
  const size_t star = pattern.find('*');
  if (star == absl::string_view::npos) {
    return name == pattern ? std::optional(std::string(replacement)) : std::nullopt;
  }
  const absl::string_view before = pattern.substr(0, star), behind = pattern.substr(star + 1);
  if (name.size() < before.size() + behind.size()) return std::nullopt;
  if (!absl::StartsWith(name, before) || !absl::EndsWith(name, behind)) return std::nullopt;
  const absl::string_view part = name.substr(before.size(), name.size() - before.size() - behind.size());
  const size_t place = replacement.find('*');
  if (place == absl::string_view::npos) return std::string(replacement);
  return absl::StrCat(replacement.substr(0, place), part, replacement.substr(place + 1));
}

// A value of `offered` is one of `wanted` too.
bool Holds(DType wanted, DType offered) {
  return wanted == offered || (wanted == DType::kF32 && (offered == DType::kF16 || offered == DType::kBF16));
}

std::string TypeText(const TensorSpec& spec) { return absl::StrCat(DTypeName(spec.dtype), ShapeString(spec.shape)); }

class Matching {
 public:
  Matching(absl::Span<const WantedTensor> wanted, absl::Span<const TensorSpec> offered, const WeightRules& rules,
           absl::string_view source, const std::map<std::string, size_t>& second_names)
      : wanted_(wanted), offered_(offered), rules_(rules), source_(source), second_names_(second_names) {}

  absl::StatusOr<WeightMatch> Run() {
    Rename();
    Choose();
    Pair();
    FindMissing();
    FindUnused();
    if (problems_.empty()) return std::move(match_);
    return absl::InvalidArgumentError(absl::StrJoin(problems_, "; "));
  }

 private:
  // Fills by_name_: what the model would call each tensor of the source.
  void Rename() {
    std::set<std::string> idle;
    for (const auto& [pattern, replacement] : rules_.rename) {
      if (std::count(pattern.begin(), pattern.end(), '*') > 1 ||
          std::count(replacement.begin(), replacement.end(), '*') > std::count(pattern.begin(), pattern.end(), '*')) {
        Problem("model.from.rename: '", pattern, "': '", replacement,
                "' has more than one *, or one only behind the colon");
      }
      idle.insert(pattern);
    }
    for (size_t i = 0; i < offered_.size(); ++i) {
      std::string name = offered_[i].name;
      std::string by;
      for (const auto& [pattern, replacement] : rules_.rename) {
        const std::optional<std::string> renamed = Renamed(offered_[i].name, pattern, replacement);
        if (!renamed.has_value()) continue;
        idle.erase(pattern);
        if (!by.empty()) {
          Problem("model.from.rename: both '", by, "' and '", pattern, "' match ", offered_[i].name);
        }
        by = pattern;
        name = *renamed;
      }
      const auto [other, is_new] = by_name_.emplace(name, i);
      if (!is_new) {
        Problem("model.from.rename: ", offered_[other->second].name, " and ", offered_[i].name, " both become ", name);
      }
    }
    for (const std::string& pattern : idle) {
      Problem("model.from.rename: no tensor of ", source_, " matches '", pattern, "'");
    }
    by_name_.insert(second_names_.begin(), second_names_.end());  // where no first name is the same
  }

  // Fills chosen_: what `only` leaves of the model, with the second names of what it matches.
  void Choose() {
    std::set<std::string> stems;
    for (const WantedTensor& tensor : wanted_) {
      if (rules_.only.empty() || MatchesAny(tensor.spec.name, rules_.only)) stems.insert(StemOf(tensor));
    }
    for (const WantedTensor& tensor : wanted_) {
      if (tensor.of_job) continue;
      if (stems.contains(StemOf(tensor))) {
        chosen_.push_back(&tensor);
      } else {
        match_.left_out.push_back(tensor.spec.name);
      }
    }
    for (const std::string& pattern : rules_.only) {
      const bool any = std::any_of(wanted_.begin(), wanted_.end(),
                                   [&](const WantedTensor& tensor) { return MatchesAny(tensor.spec.name, {pattern}); });
      if (!any) Problem("model.from.only: no tensor of the model matches '", pattern, "'");
    }
  }

  void Pair() {
    std::vector<std::string> differ;
    for (const WantedTensor* tensor : chosen_) {
      const auto found = by_name_.find(tensor->spec.name);
      if (found == by_name_.end()) continue;
      const TensorSpec& offered = offered_[found->second];
      if (offered.shape != tensor->spec.shape || !Holds(tensor->spec.dtype, offered.dtype)) {
        differ.push_back(
            absl::StrCat(tensor->spec.name, " is ", TypeText(tensor->spec), " here and ", TypeText(offered), " there"));
      }
      match_.taken.emplace(tensor->spec.name, found->second);
    }
    if (!differ.empty()) {
      Problem("model.from: tensors of ", source_, " do not fit: ", ListNames(differ),
              "; name those that do with model.from.only");
    }
  }

  void FindMissing() {
    std::set<std::string> served;
    for (const WantedTensor* tensor : chosen_) {
      if (match_.taken.contains(tensor->spec.name)) served.insert(StemOf(*tensor));
    }
    std::vector<std::string> wrong;
    for (const WantedTensor* tensor : chosen_) {
      if (served.contains(StemOf(*tensor))) continue;
      const bool allowed = MatchesAny(tensor->spec.name, rules_.allow_missing) ||
                           (!tensor->same_as.empty() && MatchesAny(tensor->same_as, rules_.allow_missing));
      (allowed ? match_.missing : wrong).push_back(tensor->spec.name);
    }
    if (wrong.empty()) return;
    Problem("model.from: ", source_, " lacks tensors of the model: ", ListNames(wrong),
            "; say what they are called there with model.from.rename, or that they begin anew with "
            "model.from.allow_missing");
  }

  void FindUnused() {
    std::set<size_t> known;
    for (const WantedTensor& tensor : wanted_) {
      const auto found = by_name_.find(tensor.spec.name);
      if (found != by_name_.end()) known.insert(found->second);
    }
    std::vector<std::string> wrong;
    for (const auto& [name, index] : by_name_) {
      if (known.contains(index)) continue;
      const std::string& there = offered_[index].name;
      (MatchesAny(there, rules_.allow_unused) ? match_.unused : wrong).push_back(there);
    }
    if (wrong.empty()) return;
    Problem("model.from: the model has no tensors for some of ", source_, ": ", ListNames(wrong),
            "; say what they are called here with model.from.rename, or that they are not needed with "
            "model.from.allow_unused");
  }

  static const std::string& StemOf(const WantedTensor& tensor) {
    return tensor.same_as.empty() ? tensor.spec.name : tensor.same_as;
  }
  template <typename... Parts>
  void Problem(const Parts&... parts) {
    problems_.push_back(absl::StrCat(parts...));
  }

  const absl::Span<const WantedTensor> wanted_;
  const absl::Span<const TensorSpec> offered_;
  const WeightRules& rules_;
  const absl::string_view source_;
  const std::map<std::string, size_t>& second_names_;
  std::map<std::string, size_t> by_name_;
  std::vector<const WantedTensor*> chosen_;
  std::vector<std::string> problems_;
  WeightMatch match_;
};

}  // namespace

bool MatchesAny(const std::string& name, const std::vector<std::string>& patterns) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; });
}

absl::StatusOr<WeightMatch> MatchWeights(absl::Span<const WantedTensor> wanted, absl::Span<const TensorSpec> offered,
                                         const WeightRules& rules, absl::string_view source,
                                         const std::map<std::string, size_t>& second_names) {
  return Matching(wanted, offered, rules, source, second_names).Run();
}

}  // namespace lockstep::chief
