// Widths of text on a terminal, in columns: UTF-8 is cut between characters, and names in any script keep tables even.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_COLUMNS_H_
#define LOCKSTEP_DEPLOY_CLI_COLUMNS_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::cli {

// The columns that `text`, a row without control characters, takes. Ideographs and the like take two, marks that stand
// on the character before them none, a tab eight at most, and a byte that is no UTF-8 one.
size_t ColumnsOf(absl::string_view text);

// The longest beginning of `text` that takes at most `columns`, cut between characters.
std::string CutToColumns(absl::string_view text, size_t columns);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COLUMNS_H_
