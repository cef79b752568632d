#include "common/object_store/object_key.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

constexpr absl::string_view kMarks = "!-_.*'()=+,:@";

bool IsAllowed(char c) { return absl::ascii_isalnum(c) || kMarks.find(c) != absl::string_view::npos; }

}  // namespace

absl::Status CheckObjectKey(absl::string_view key) {
  const auto bad = [key](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("object key '", absl::CHexEscape(key.substr(0, 200)), "' ", why, ". Choose another name"));
  };
  if (key.size() > kMaxKeyBytes) return bad(absl::StrCat("has ", key.size(), " bytes; at most ", kMaxKeyBytes));
  for (const absl::string_view part : absl::StrSplit(key, '/')) {
    if (part.empty()) return bad("has an empty part between '/'");
    if (part == "." || part == "..") return bad("has '.' or '..' for a part");
    if (!std::all_of(part.begin(), part.end(), IsAllowed)) {
      return bad(absl::StrCat("has a character other than letters, digits, '/' and ", kMarks));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckKeyPrefix(absl::string_view prefix) {
  if (!prefix.empty() && prefix.back() == '/') prefix.remove_suffix(1);
  return prefix.empty() ? absl::OkStatus() : CheckObjectKey(prefix);
}

std::string JoinKey(absl::string_view prefix, absl::string_view key) {
  return prefix.empty() ? std::string(key) : absl::StrCat(prefix, "/", key);
}

}  // namespace lockstep
