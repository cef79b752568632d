// Takes over the terminal for a program that redraws it periodically and reads single keys. The former screen comes
// back at the end, even if a signal ends the program.
//
// Threading: thread-compatible; at most one instance at a time.
#ifndef LOCKSTEP_DEPLOY_CLI_FULL_SCREEN_H_
#define LOCKSTEP_DEPLOY_CLI_FULL_SCREEN_H_

#include <termios.h>

#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::cli {

enum class Key { kNone, kUp, kDown, kPageUp, kPageDown, kHome, kEnd, kCharacter, kQuit };

struct KeyPress {
  Key key = Key::kNone;
  char character = 0;  // of kCharacter
};

// Takes the first key off `bytes`, the input of a terminal. kQuit: q, Ctrl-C, Ctrl-D or a lone Escape. Other sequences
// are skipped; kNone: no key is left.
KeyPress TakeKey(absl::string_view& bytes);

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;
};

// The size of the terminal at the standard output; 80 by 24 if it is not known.
ScreenSize SizeOfScreen();

class FullScreen {
 public:
  // REQUIRES: the standard output is a terminal that obeys control sequences.
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Replaces the content of the screen by these rows. Returns false if the terminal is gone.
  bool Draw(const std::vector<std::string>& rows);
  // Waits for the next key; kNone after `wait`. Returns kQuit also if a signal asks the program to end, or if the
  // keyboard is gone.
  KeyPress Wait(absl::Duration wait);
  // Whether keys can be read.
  bool has_keys() const { return has_keys_; }

 private:
  termios before_ = {};
  bool has_keys_ = false;
  std::string typed_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_FULL_SCREEN_H_
