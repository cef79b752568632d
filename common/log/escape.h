// Text of others (models, files, peers) as it may be shown: nothing in it moves the cursor, changes colours or pretends
// to be a line of its own.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_LOG_ESCAPE_H_
#define LOCKSTEP_COMMON_LOG_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Control characters (C0, DEL, and C1 as UTF-8 writes them) become \xNN; tabs stay; what follows a line end is set in
// by four spaces.
std::string EscapeControls(absl::string_view text);

// As much for text that comes byte by byte, `before` being the byte before this one (0: none), except that line ends
// stay as they are.
std::string EscapeControl(char byte, char before);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LOG_ESCAPE_H_
