#include "common/job/mistakes.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace lockstep {
namespace {

// Whether `key` is `section` or lies in it.
bool IsWithin(absl::string_view key, absl::string_view section) {
  return section.empty() || key == section || absl::StartsWith(key, absl::StrCat(section, "."));
}

}  // namespace

void JobMistakes::Add(const std::string& key, absl::Status mistake) {
  if (mistake.ok()) return;
  spoilt_.push_back(key);
  AddBeside(std::move(mistake));
}

void JobMistakes::AddBeside(absl::Status mistake) {
  if (mistake.ok() || std::find(all_.begin(), all_.end(), mistake) != all_.end()) return;
  all_.push_back(std::move(mistake));
}

absl::Status JobMistakes::status() const {
  if (all_.size() <= 1) return all_.empty() ? absl::OkStatus() : all_[0];
  return absl::Status(all_[0].code(), absl::StrJoin(all_, "\n", [](std::string* out, const absl::Status& mistake) {
                        absl::StrAppend(out, mistake.message());
                      }));
}

bool JobMistakes::IsInvalid(absl::string_view key) const {
  return std::any_of(spoilt_.begin(), spoilt_.end(), [&](const std::string& spoilt) { return IsWithin(key, spoilt); });
}

bool JobMistakes::HasInvalidPart(absl::string_view key) const {
  return std::any_of(spoilt_.begin(), spoilt_.end(),
                     [&](const std::string& spoilt) { return IsWithin(key, spoilt) || IsWithin(spoilt, key); });
}

}  // namespace lockstep
