#include "deploy/cli/columns.h"

#include <locale.h>
#include <wchar.h>

namespace lockstep::cli {
namespace {

constexpr int kTab = 8;

// The rules of UTF-8 for this thread, whatever locale the user has. Without them every byte is a character.
class Utf8Rules {
 public:
  Utf8Rules() {
    static const locale_t rules = newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr);
    if (rules != nullptr) before_ = uselocale(rules);
  }
  ~Utf8Rules() {
    if (before_ != nullptr) uselocale(before_);
  }
  Utf8Rules(const Utf8Rules&) = delete;
  Utf8Rules& operator=(const Utf8Rules&) = delete;

 private:
  locale_t before_ = nullptr;
};

struct Character {
  size_t bytes = 1;
  size_t columns = 1;
};

// The character at the beginning of `text`, which is not empty. A byte that begins none is a character of its own.
Character First(absl::string_view text) {
  if (text[0] == '\t') return {1, kTab};
  mbstate_t state = {};
  wchar_t code = 0;
  const size_t bytes = mbrtowc(&code, text.data(), text.size(), &state);
  if (bytes == 0 || bytes > text.size()) return {};  // NUL, or no character
  const int columns = wcwidth(code);
  return {bytes, columns < 0 ? 1 : static_cast<size_t>(columns)};
}

}  // namespace

size_t ColumnsOf(absl::string_view text) {
  const Utf8Rules rules;
  size_t columns = 0;
  while (!text.empty()) {
    const Character next = First(text);
    columns += next.columns;
    text.remove_prefix(next.bytes);
  }
  return columns;
}

std::string CutToColumns(absl::string_view text, size_t columns) {
  const Utf8Rules rules;
  size_t end = 0;
  for (size_t taken = 0; end < text.size();) {
    const Character next = First(text.substr(end));
    taken += next.columns;
    if (taken > columns) break;
    end += next.bytes;
  }
  return std::string(text.substr(0, end));
}

}  // namespace lockstep::cli
