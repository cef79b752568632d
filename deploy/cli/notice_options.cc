#include "deploy/cli/notice_options.h"

namespace lockstep::cli {
namespace {

constexpr char kFile[] = "--notice-file";
constexpr char kCloud[] = "--notice";
constexpr char kEndpoint[] = "--notice-endpoint";

}  // namespace

void AddNoticeOptions(CLI::App& command, worker::NoticeOptions& notices) {
  command.add_option(kFile, notices.file,
                     "Leave as on SIGTERM when this file appears; a time in it, such as 90s, says what is left");
  command
      .add_option(
          kCloud, notices.cloud,
          "Leave when this cloud announces the machine's end: aws, gcp, azure, auto (as the firmware says), none")
      ->capture_default_str();
  command.add_option(kEndpoint, notices.endpoint,
                     "The cloud's metadata server, http://ADDRESS:PORT (default: http://169.254.169.254)");
}

std::vector<std::string> NoticeWords(const worker::NoticeOptions& notices) {
  std::vector<std::string> words;
  if (!notices.file.empty()) words.insert(words.end(), {kFile, notices.file});
  if (notices.cloud != worker::NoticeOptions().cloud) words.insert(words.end(), {kCloud, notices.cloud});
  if (!notices.endpoint.empty()) words.insert(words.end(), {kEndpoint, notices.endpoint});
  return words;
}

}  // namespace lockstep::cli
