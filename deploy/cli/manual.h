// Makes manual pages from the command tree.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_MANUAL_H_
#define LOCKSTEP_DEPLOY_CLI_MANUAL_H_

#include <string>
#include <vector>

#include "deploy/cli/command_tree.h"

namespace lockstep::cli {

struct ManualPage {
  std::string name;  // of its file: "lockstep-checkpoint-ls.1"
  std::string text;  // roff
};

// One page for `program` and one for each command below it, parents first. The foot of each has `version` ("lockstep
// 0.1.0") and `date` ("2026-01-31").
std::vector<ManualPage> ManualPages(const CommandText& program, const std::string& version, const std::string& date);

// Escapes `text` for roff: hyphens that can be copied, no requests, `words` in backquotes as bold.
std::string RoffText(const std::string& text);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_MANUAL_H_
