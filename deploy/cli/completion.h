// Scripts that complete the words of a command line in bash, zsh and fish, made from what the command line has:
// commands, options, the values of those that take a few only, and files for the others. They need no other package.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_COMPLETION_H_
#define LOCKSTEP_DEPLOY_CLI_COMPLETION_H_

#include <string>

#include "deploy/cli/command_tree.h"

namespace lockstep::cli {

// Each is for the program that `program` describes; after its command `help` the commands are completed.
// REQUIRES: names and choices are words without quotes, blanks and characters that shells expand.
std::string BashCompletion(const CommandText& program);
std::string ZshCompletion(const CommandText& program);
std::string FishCompletion(const CommandText& program);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_COMPLETION_H_
