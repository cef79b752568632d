#include "deploy/cli/full_screen.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace lockstep::cli {
namespace {

std::vector<Key> KeysOf(absl::string_view bytes) {
  std::vector<Key> keys;
  for (KeyPress press = TakeKey(bytes); press.key != Key::kNone; press = TakeKey(bytes)) keys.push_back(press.key);
  return keys;
}

TEST_CASE("full screen: keys are told apart, also those that terminals send as several bytes", "[cli]") {
  CHECK(KeysOf("\x1b[A\x1b[B\x1bOA\x1bOB") == std::vector<Key>{Key::kUp, Key::kDown, Key::kUp, Key::kDown});
  CHECK(KeysOf("\x1b[5~\x1b[6~\x1b[H\x1b[4~") == std::vector<Key>{Key::kPageUp, Key::kPageDown, Key::kHome, Key::kEnd});
  CHECK(KeysOf("n\x1b[Aq") == std::vector<Key>{Key::kCharacter, Key::kUp, Key::kQuit});
  absl::string_view typed = "sw";
  CHECK(TakeKey(typed).character == 's');
  CHECK(TakeKey(typed).character == 'w');
}

TEST_CASE("full screen: q, Ctrl-C, Ctrl-D and Escape end it, and unknown keys do nothing", "[cli]") {
  for (const char* end : {"q", "Q", "\x03", "\x04", "\x1b"}) CHECK(KeysOf(end) == std::vector<Key>{Key::kQuit});
  CHECK(KeysOf("\x1b[1;5C\x1b[24~\x1bOP\t\xc3\xa9").empty());
  CHECK(KeysOf("\x1b[").empty());
  CHECK(KeysOf("").empty());
}

}  // namespace
}  // namespace lockstep::cli
