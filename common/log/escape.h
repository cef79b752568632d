// Escapes foreign text (from models, files, peers) for display, so that it cannot move the cursor, change colours or
// look like a line of its own.
//
// Threading: thread-safe (a pure function).
#ifndef LOCKSTEP_COMMON_LOG_ESCAPE_H_
#define LOCKSTEP_COMMON_LOG_ESCAPE_H_

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// Control characters (C0, DEL, and C1 as UTF-8 writes them) become \xNN; tabs stay; every line after the first is
// indented by four spaces.
std::string EscapeControls(absl::string_view text);

// The same for text that arrives byte by byte, except that line ends stay unchanged. `before` is the preceding byte, 0
// if there is none.
std::string EscapeControl(char byte, char before);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_LOG_ESCAPE_H_
