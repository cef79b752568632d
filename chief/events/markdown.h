// Escapes foreign text, such as a worker's error message or names of tensors, for the Markdown of TensorBoard's Text
// tab.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_CHIEF_EVENTS_MARKDOWN_H_
#define LOCKSTEP_CHIEF_EVENTS_MARKDOWN_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::chief {

// MarkdownLine shows this many bytes of a longer text, and "..." behind them.
inline constexpr size_t kMostMarkdownBytes = 500;

// `text` for one line of a list or one cell of a table, shown literally, whatever characters it has. Each control
// character, such as a line break, becomes a space. Truncation does not split a character of UTF-8.
std::string MarkdownLine(absl::string_view text);

// `text` as a block of code, with its line breaks. Bytes that are not UTF-8 are replaced. A longer text is cut after
// `most` bytes, with "..." behind them.
std::string MarkdownBlock(absl::string_view text, size_t most);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_MARKDOWN_H_
