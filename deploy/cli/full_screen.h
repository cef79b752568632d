// A whole terminal for a program that draws it again and again and takes single keys. What stood there before comes
// back at the end, also when a signal ends the program.
//
// Threading: owned by main. One at a time.
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

// The first key of what a terminal sent, which is taken off `bytes`. kQuit: q, Ctrl-C, Ctrl-D or a lone Escape. What is
// no key is passed over; kNone: nothing is left.
KeyPress TakeKey(absl::string_view& bytes);

struct ScreenSize {
  size_t columns = 80;
  size_t rows = 24;
};

// Of the standard output; what a terminal does not tell is as above.
ScreenSize SizeOfScreen();

class FullScreen {
 public:
  // REQUIRES: the standard output is a terminal that obeys control sequences.
  FullScreen();
  ~FullScreen();
  FullScreen(const FullScreen&) = delete;
  FullScreen& operator=(const FullScreen&) = delete;

  // Shows these rows in place of what was there. False: nobody sees them any more.
  bool Draw(const std::vector<std::string>& rows);
  // The next key, or kNone after `wait`; kQuit also when a signal asks the program to end, and when the keyboard is
  // gone.
  KeyPress Wait(absl::Duration wait);
  // Somebody can press keys.
  bool has_keys() const { return has_keys_; }

 private:
  termios before_ = {};
  bool has_keys_ = false;
  std::string typed_;
};

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_FULL_SCREEN_H_
