#include "deploy/cli/columns.h"

#include <cstdint>

namespace lockstep::cli {
namespace {

constexpr size_t kTab = 8;

struct Range {
  uint32_t first;
  uint32_t last;
};

// Combining marks, joiners and variation selectors.
constexpr Range kNoColumn[] = {{0x0300, 0x036f}, {0x200b, 0x200f}, {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}};
// East Asian wide and full-width characters, and emoji (Unicode Standard Annex 11, in coarse ranges).
constexpr Range kTwoColumns[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},  {0x3041, 0xa4cf}, {0xac00, 0xd7a3},
                                 {0xf900, 0xfaff},   {0xfe30, 0xfe6f},  {0xff00, 0xff60}, {0xffe0, 0xffe6},
                                 {0x1f300, 0x1faff}, {0x20000, 0x3fffd}};

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
};

// The character at the beginning of `text`, which is not empty. A byte that begins none is a character of its own.
Character First(absl::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t bytes = lead < 0x80 ? 1 : lead >= 0xf0 && lead < 0xf8 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc2 ? 2 : 1;
  if (bytes == 1 || lead >= 0xf8 || bytes > text.size()) return {lead, 1};
  uint32_t code = lead & (0xffU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {lead, 1};
    code = code << 6 | (byte & 0x3f);
  }
  return {code, bytes};
}

template <size_t kCount>
bool IsIn(const Range (&ranges)[kCount], uint32_t code) {
  for (const Range& range : ranges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

size_t WidthOf(uint32_t code) {
  if (code == '\t') return kTab;
  return IsIn(kNoColumn, code) ? 0 : IsIn(kTwoColumns, code) ? 2 : 1;
}

}  // namespace

size_t ColumnsOf(absl::string_view text) {
  size_t columns = 0;
  for (Character next; !text.empty(); text.remove_prefix(next.bytes)) {
    next = First(text);
    columns += WidthOf(next.code);
  }
  return columns;
}

std::string CutToColumns(absl::string_view text, size_t columns) {
  size_t end = 0;
  for (size_t taken = 0; end < text.size();) {
    const Character next = First(text.substr(end));
    taken += WidthOf(next.code);
    if (taken > columns) break;
    end += next.bytes;
  }
  return std::string(text.substr(0, end));
}

}  // namespace lockstep::cli
