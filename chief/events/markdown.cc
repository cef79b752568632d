#include "chief/events/markdown.h"

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

namespace lockstep::chief {
namespace {

constexpr absl::string_view kEscaped = "\\`*_[#!";

bool Continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

void Add(char c, std::string& line) {
  // As entities: a backslash escapes these only in some dialects.
  if (c == '|') return absl::StrAppend(&line, "&#124;");
  if (c == '<') return absl::StrAppend(&line, "&lt;");
  if (c == '>') return absl::StrAppend(&line, "&gt;");
  if (c == '&') return absl::StrAppend(&line, "&amp;");
  if (kEscaped.find(c) != absl::string_view::npos) line.push_back('\\');
  const auto code = static_cast<unsigned char>(c);
  line.push_back(code < 0x20 || code == 0x7F ? ' ' : c);
}

}  // namespace

std::string MarkdownLine(absl::string_view text) {
  size_t shown = text.size();
  if (shown > kMostMarkdownBytes) {
    shown = kMostMarkdownBytes;
    while (shown > kMostMarkdownBytes - 3 && Continues(text[shown])) --shown;
  }
  std::string line;
  for (const char c : text.substr(0, shown)) Add(c, line);
  if (shown < text.size()) line += "...";
  return line;
}

std::string MarkdownBlock(absl::string_view text, size_t most) {
  size_t shown = text.size();
  if (shown > most) {
    shown = most;
    while (shown > 0 && Continues(text[shown])) --shown;
  }
  // Readers fail on what is not UTF-8; a model of bytes may write anything.
  const std::string replaced =
      nlohmann::json(std::string(text.substr(0, shown))).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string valid = nlohmann::json::parse(replaced).get<std::string>();
  // Lines that are indented by four spaces are code in every dialect, whatever they contain.
  std::string block = "    ";
  for (const char c : valid) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      block += "\n    ";
    } else {
      block.push_back((code < 0x20 && c != '\t') || code == 0x7F ? ' ' : c);
    }
  }
  if (shown < text.size()) block += "...";
  return block;
}

}  // namespace lockstep::chief
