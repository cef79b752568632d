// The options for preemption notices that `lockstep worker` and `lockstep run` share.
//
// Threading: owned by main.
#ifndef LOCKSTEP_DEPLOY_CLI_NOTICE_OPTIONS_H_
#define LOCKSTEP_DEPLOY_CLI_NOTICE_OPTIONS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "worker/notice/notices.h"

namespace lockstep::cli {

// Adds --notice-file, --notice and --notice-endpoint, which are parsed into `notices`.
void AddNoticeOptions(CLI::App& command, worker::NoticeOptions& notices);

// The words of a worker's command line that give it `notices`; none for the default.
std::vector<std::string> NoticeWords(const worker::NoticeOptions& notices);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_NOTICE_OPTIONS_H_
