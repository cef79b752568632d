// The option or operand of a command that names the place of a job. A text that can be none, as gs://bucket/prefix, is
// a mistake of the command line (exit 64), whatever the command.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_DEPLOY_CLI_PLACE_OPTION_H_
#define LOCKSTEP_DEPLOY_CLI_PLACE_OPTION_H_

#include <CLI/CLI.hpp>
#include <string>

#include "common/object_store/s3_url.h"

namespace lockstep::cli {

// As `to.add_option`; `place` outlives the parsing.
inline CLI::Option* AddPlace(CLI::App& to, const std::string& name, std::string& place, const std::string& help) {
  const CLI::Validator is_place([](const std::string& text) { return std::string(CheckPlace(text).message()); }, "");
  return to.add_option(name, place, help)->check(is_place);
}

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_PLACE_OPTION_H_
