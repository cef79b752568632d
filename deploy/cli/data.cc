// `lockstep data tokenize`: a text as tokens for a language model.
#include <iostream>
#include <memory>

#include "common/status/exit_code.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/tokenize.h"

namespace lockstep::cli {
namespace {

int Tokenize(const TokenizeOptions& options) {
  int exit_code = kExitDone;
  const absl::StatusOr<TokenCounts> counts = TokenizeBytes(options, exit_code);
  if (!counts.ok()) return Fail(counts.status(), exit_code);
  std::cout << options.out << ": " << counts->train << " tokens of 256\n";
  if (counts->eval > 0) std::cout << options.eval_out << ": " << counts->eval << " tokens of 256\n";
  return kExitDone;
}

}  // namespace

void AddData(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("data", "Make data files");
  command->require_subcommand(1);
  CLI::App* tokenize = command->add_subcommand("tokenize", "Make a file of tokens (data.train.tokens) from texts");
  auto options = std::make_shared<TokenizeOptions>();
  auto bytes = std::make_shared<bool>(false);
  tokenize->add_flag("--bytes", *bytes, "One token per byte: a vocabulary of 256")->required();
  tokenize->add_option("texts", options->texts, "Text files, read one after the other; gzip is recognised")->required();
  tokenize->add_option("-o,--out", options->out, "The file to write")->required();
  tokenize->add_option("--eval-fraction", options->eval_fraction,
                       "The part at the end of the text kept for evaluation");
  tokenize->add_option("--eval-out", options->eval_out, "The file for that part (data.eval.tokens)");
  // `bytes` is written when the line is parsed, and has to live until then.
  tokenize->callback([options, bytes, &exit_code] { exit_code = Tokenize(*options); });
}

}  // namespace lockstep::cli
