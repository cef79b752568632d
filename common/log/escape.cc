#include "common/log/escape.h"

namespace lockstep {
namespace {

void AppendHex(unsigned char byte, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

bool IsControl(unsigned char byte) { return (byte < 0x20 && byte != '\t') || byte == 0x7f; }

// The second byte of a C1 character in UTF-8.
bool IsC1(unsigned char byte, unsigned char before) { return before == 0xc2 && byte >= 0x80 && byte < 0xa0; }

}  // namespace

std::string EscapeControl(char byte, char before) {
  const auto value = static_cast<unsigned char>(byte);
  std::string out;
  if (byte != '\n' && (IsControl(value) || IsC1(value, static_cast<unsigned char>(before)))) {
    AppendHex(value, out);
  } else {
    out += byte;
  }
  return out;
}

std::string EscapeControls(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == '\n') {
      out += "\n    ";
    } else if (IsControl(byte)) {
      AppendHex(byte, out);
    } else if (IsC1(next, byte)) {
      AppendHex(next, out);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace lockstep
