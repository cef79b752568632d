#include "common/log/escape.h"

#include <catch2/catch.hpp>
#include <string>

namespace lockstep {
namespace {

// Byte by byte, as a model writes.
std::string Streamed(const std::string& text) {
  std::string out;
  char before = 0;
  for (const char byte : text) {
    out += EscapeControl(byte, before);
    before = byte;
  }
  return out;
}

TEST_CASE("escape: no control character reaches a terminal, at once or byte by byte", "[log]") {
  const std::string red = "\x1b[31mred\x7f\a\r";
  CHECK(EscapeControls(red) == "\\x1b[31mred\\x7f\\x07\\x0d");
  CHECK(Streamed(red) == EscapeControls(red));

  // CSI as one character, in UTF-8. Its first byte alone shows nothing.
  CHECK(EscapeControls("\xc2\x9b") == "\\x9b");
  CHECK(Streamed("\xc2\x9b") == "\xc2\\x9b");
}

TEST_CASE("escape: text stays text", "[log]") {
  const std::string text = "Ünïcödé\tand tabs";
  CHECK(EscapeControls(text) == text);
  CHECK(Streamed(text) == text);
  CHECK(EscapeControls("a\nb") == "a\n    b");
  CHECK(Streamed("a\nb") == "a\nb");
}

}  // namespace
}  // namespace lockstep
