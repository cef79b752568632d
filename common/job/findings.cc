#include "common/job/findings.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep {

void Findings::Ok(std::string what, std::string text) { Add({Gravity::kOk, std::move(what), std::move(text)}); }

void Findings::Warn(std::string what, std::string text) { Add({Gravity::kWarning, std::move(what), std::move(text)}); }

void Findings::Error(std::string what, const absl::Status& error, ExitCode exit_code) {
  Add({Gravity::kError, std::move(what), std::string(error.message()), error.code(), exit_code});
}

absl::Status Findings::At(const std::string& key, const absl::Status& status) const {
  const std::string place = places_.Of(key);
  const std::string named = absl::StrCat(key, ": ");
  return absl::Status(
      status.code(), absl::StrCat(place, place.empty() ? "" : ": ", named, absl::StripPrefix(status.message(), named)));
}

int Findings::Count(Gravity gravity) const {
  return static_cast<int>(
      std::count_if(all_.begin(), all_.end(), [&](const Finding& finding) { return finding.gravity == gravity; }));
}

const Finding* Findings::First() const {
  const auto found =
      std::find_if(all_.begin(), all_.end(), [](const Finding& finding) { return finding.gravity == Gravity::kError; });
  return found == all_.end() ? nullptr : &*found;
}

absl::Status Findings::first_error() const {
  const Finding* first = First();
  return first == nullptr ? absl::OkStatus() : absl::Status(first->code, first->text);
}

ExitCode Findings::exit_code() const { return First() == nullptr ? kExitDone : First()->exit_code; }

}  // namespace lockstep
