// Implements `lockstep data tokenize`: writes texts as a file of tokens, one token per byte (docs/formats/tokens.md).
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
  std::vector<std::string> texts;  // concatenated; gzip files are unpacked
  std::string out;
  double eval_fraction = 0;  // the fraction at the end that goes to eval_out; 0: none
  std::string eval_out;
};

struct TokenCounts {
  int64_t train = 0;
  int64_t eval = 0;
};

// Each output appears complete or not at all; an existing file is replaced. After an error `exit_code` says whether the
// options (64), the texts (65) or the outputs (74, 78) are at fault.
absl::StatusOr<TokenCounts> TokenizeBytes(const TokenizeOptions& options, int& exit_code);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_TOKENIZE_H_
