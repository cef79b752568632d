// `lockstep data tokenize`: texts as a file of tokens, one token per byte (docs/formats/tokens.md).
//
// Threading: thread-safe for different outputs; blocks on the file system.
#ifndef LOCKSTEP_DEPLOY_CLI_TOKENIZE_H_
#define LOCKSTEP_DEPLOY_CLI_TOKENIZE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace lockstep::cli {

struct TokenizeOptions {
  std::vector<std::string> texts;  // read one after the other; gzip is recognised
  std::string out;
  double eval_fraction = 0;  // the part at the end that goes to eval_out; 0: none
  std::string eval_out;
};

struct TokenCounts {
  int64_t train = 0;
  int64_t eval = 0;
};

// Each output appears complete or not at all; a file of its name is replaced. After an error `exit_code` is that of the
// process: the options (64), the texts (65) or the outputs (74, 78).
absl::StatusOr<TokenCounts> TokenizeBytes(const TokenizeOptions& options, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TOKENIZE_H_
