#include "common/http/http_message.h"

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace lockstep {
namespace {

// %41 becomes A, and '+' a space in a query. nullopt: an escape that is none, or one of NUL.
std::optional<std::string> Decode(absl::string_view text, bool in_query) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += in_query && text[i] == '+' ? ' ' : text[i];
      continue;
    }
    if (i + 2 >= text.size() || !absl::ascii_isxdigit(text[i + 1]) || !absl::ascii_isxdigit(text[i + 2])) {
      return std::nullopt;
    }
    decoded += absl::HexStringToBytes(text.substr(i + 1, 2));
    if (decoded.back() == '\0') return std::nullopt;
    i += 2;
  }
  return decoded;
}

}  // namespace

std::optional<HttpRequest> ParseTarget(absl::string_view target) {
  const size_t mark = target.find('?');
  const auto path = Decode(target.substr(0, mark), /*in_query=*/false);
  if (!path.has_value() || !absl::StartsWith(*path, "/")) return std::nullopt;
  HttpRequest request;
  request.path = *path;
  if (mark == absl::string_view::npos) return request;
  for (const absl::string_view field : absl::StrSplit(target.substr(mark + 1), '&', absl::SkipEmpty())) {
    const std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(field, absl::MaxSplits('=', 1));
    const auto name = Decode(parts.first, /*in_query=*/true);
    const auto value = Decode(parts.second, /*in_query=*/true);
    if (!name.has_value() || !value.has_value()) return std::nullopt;
    request.query[*name] = *value;
  }
  return request;
}

std::string CookieIn(absl::string_view header, absl::string_view name) {
  for (const absl::string_view field : absl::StrSplit(header, ';')) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(absl::StripAsciiWhitespace(field), absl::MaxSplits('=', 1));
    if (parts.first == name) return std::string(parts.second);
  }
  return "";
}

}  // namespace lockstep
