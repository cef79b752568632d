// Measures and cuts text by its width on a terminal, in columns. UTF-8 is cut between characters, so that tables stay
// aligned with names in any script.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_COLUMNS_H_
#define LOCKSTEP_DEPLOY_CLI_COLUMNS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::cli {

// The width of `text`, a line without control characters. Ideographs and the like take two columns, combining marks
// none, a tab at most eight, and a byte that is not UTF-8 one.
size_t ColumnsOf(absl::string_view text);

// The longest prefix of `text` of at most `columns` columns, cut between characters.
std::string CutToColumns(absl::string_view text, size_t columns);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COLUMNS_H_
