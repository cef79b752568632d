// Words that are not ours, such as a worker's last ones or names of tensors, inside Markdown that people read in
// TensorBoard's Text tab.
//
// Threading: stateless.
#ifndef LOCKSTEP_CHIEF_EVENTS_MARKDOWN_H_
#define LOCKSTEP_CHIEF_EVENTS_MARKDOWN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::chief {

// Of a text that is longer, so many bytes are shown, and "..." behind them.
inline constexpr size_t kMostMarkdownBytes = 500;

// `text` for one line of a list or one cell of a table: it reads as it is, whatever characters it has. Each control
// character, line breaks among them, becomes a space. The cut does not part a character of UTF-8.
std::string MarkdownLine(absl::string_view text);

// `text` as it is, line breaks and all: a block of code. What is not UTF-8 is replaced. Of a text that is longer,
// `most` bytes and "..." behind them.
std::string MarkdownBlock(absl::string_view text, size_t most);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_MARKDOWN_H_
