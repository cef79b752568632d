#include "common/log/escape.h"

namespace lockstep {
namespace {

void AppendHex(unsigned char byte, std::string& out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out += "\\x";
  out += kHex[byte >> 4];
  out += kHex[byte & 15];
}

}  // namespace

std::string EscapeControls(absl::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    if (byte == '\n') {
      out += "\n    ";
    } else if ((byte < 0x20 && byte != '\t') || byte == 0x7f) {
      AppendHex(byte, out);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      AppendHex(next, out);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace lockstep
