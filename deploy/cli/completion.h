// Makes completion scripts for bash, zsh and fish from the command tree: they complete commands, options, the values of
// options with few choices, and files for the others. They need no other package.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_COMPLETION_H_
#define LOCKSTEP_DEPLOY_CLI_COMPLETION_H_

#include <string>

#include "deploy/cli/command_tree.h"

namespace lockstep::cli {

// Each returns the script for the program that `program` describes; behind its command `help` the commands are
// completed. REQUIRES: names and choices are words without quotes, blanks and characters that shells expand.
std::string BashCompletion(const CommandText& program);
std::string ZshCompletion(const CommandText& program);
std::string FishCompletion(const CommandText& program);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COMPLETION_H_
