#include "worker/data/field_choice.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr size_t kMostNamed = 12;

class Choice {
 public:
  Choice(const job::DataFiles& files, absl::Span<const std::string> names, absl::string_view what, bool by_position,
         const ReadOptions& options)
      : files_(files), names_(names), what_(what), by_position_(by_position), options_(options) {}

  absl::StatusOr<FieldChoice> Make() const {
    FieldChoice choice;
    LS_ASSIGN_OR_RETURN(choice.label, Label());
    std::set<size_t> taken;
    if (choice.label.has_value()) taken.insert(*choice.label);
    for (const std::string& name : files_.input_fields()) {
      LS_ASSIGN_OR_RETURN(const size_t field, Find(name, "input_fields"));
      if (!taken.insert(field).second) {
        return Error(absl::StrCat("input_fields names ", what_, " '", name, "' ",
                                  field == choice.label ? "which is the label" : "twice"));
      }
      choice.inputs.push_back(field);
    }
    if (files_.input_fields().empty()) {
      for (size_t i = 0; i < names_.size(); ++i) {
        if (i != choice.label) choice.inputs.push_back(i);
      }
    }
    if (choice.inputs.empty()) return Error(absl::StrCat("has no ", what_, " beside the label: ", Names()));
    return choice;
  }

 private:
  absl::StatusOr<std::optional<size_t>> Label() const {
    if (files_.has_label_field()) {
      const absl::StatusOr<size_t> named = Find(files_.label_field(), "label_field");
      if (named.ok() || options_.labels != Labels::kNone) return named;
      return std::nullopt;
    }
    for (const char* usual : {"labels", "label"}) {
      const bool is_input =
          options_.labels == Labels::kIfThere && std::count(options_.inputs.begin(), options_.inputs.end(), usual) > 0;
      if (!is_input && std::count(names_.begin(), names_.end(), usual) > 0) return Find(usual, "label_field");
    }
    if (options_.labels != Labels::kRequired) return std::nullopt;
    return Error(absl::StrCat("which ", what_, " is the label? Name it with label_field: ", Names()));
  }

  absl::StatusOr<size_t> Find(const std::string& name, absl::string_view key) const {
    const auto first = std::find(names_.begin(), names_.end(), name);
    if (first != names_.end()) {
      if (std::find(first + 1, names_.end(), name) == names_.end()) return static_cast<size_t>(first - names_.begin());
      return Error(absl::StrCat(key, ": more than one ", what_, " is called '", name, "'",
                                by_position_ ? "; give its position, from 0" : ""));
    }
    int64_t position = 0;
    const int64_t count = static_cast<int64_t>(names_.size());
    if (by_position_ && absl::SimpleAtoi(name, &position) && position >= -1 && position < count) {
      return static_cast<size_t>(position < 0 ? count - 1 : position);
    }
    return Error(absl::StrCat(key, ": there is no ", what_, " '", name, "': ", Names()));
  }

  std::string Names() const {
    std::string text = absl::StrCat("the file has the ", what_, "s");
    for (size_t i = 0; i < std::min(names_.size(), kMostNamed); ++i) {
      absl::StrAppend(&text, i == 0 ? " " : ", ", "'", names_[i].substr(0, 40), "'");
    }
    return names_.size() > kMostNamed ? absl::StrCat(text, " and ", names_.size() - kMostNamed, " more") : text;
  }

  absl::Status Error(absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(files_.inputs(), ": ", message));
  }

  const job::DataFiles& files_;
  absl::Span<const std::string> names_;
  absl::string_view what_;
  bool by_position_;
  const ReadOptions& options_;
};

}  // namespace

absl::StatusOr<FieldChoice> ChooseFields(const job::DataFiles& files, absl::Span<const std::string> names,
                                         absl::string_view what, bool by_position, const ReadOptions& options) {
  return Choice(files, names, what, by_position, options).Make();
}

}  // namespace lockstep::worker
