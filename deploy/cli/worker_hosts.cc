#include "deploy/cli/worker_hosts.h"

#include <filesystem>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"

namespace lockstep::cli {
namespace {

constexpr int kMostSlots = 1024;

// `place`: "hosts.txt:3".
absl::Status AddHost(absl::string_view host, absl::string_view slots, absl::string_view place,
                     std::vector<WorkerHost>& hosts) {
  int count = 0;
  if (!absl::SimpleAtoi(slots, &count) || count < 1 || count > kMostSlots) {
    return absl::InvalidArgumentError(
        absl::StrCat(place, ": '", slots, "' is no number of workers from 1 to ", kMostSlots));
  }
  // One that begins with a dash would be an option of ssh.
  if (host.empty() || host[0] == '-')
    return absl::InvalidArgumentError(absl::StrCat(place, ": '", host, "' is no host"));
  for (const WorkerHost& other : hosts) {
    if (other.host == host) return absl::InvalidArgumentError(absl::StrCat(place, ": ", host, " is there twice"));
  }
  for (int i = 0; i < count; ++i) hosts.push_back({std::string(host), i});
  return absl::OkStatus();
}

absl::Status ReadFile(const std::string& path, std::vector<WorkerHost>& hosts) {
  std::ifstream file(path);
  if (!file) return absl::PermissionDeniedError(absl::StrCat("cannot read the hosts in ", path));
  int number = 0;
  for (std::string line; std::getline(file, line);) {
    const std::string place = absl::StrCat(path, ":", ++number);
    const std::string text = line.substr(0, line.find('#'));
    std::vector<std::string> words = absl::StrSplit(text, absl::ByAnyChar(" \t\r"), absl::SkipEmpty());
    if (words.empty()) continue;
    absl::string_view slots = "1";
    if (words.size() == 2) {
      slots = words[1];
      if (!absl::ConsumePrefix(&slots, "slots=")) words.emplace_back();
    }
    if (words.size() > 2) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": a line is HOST or HOST slots=N, not '", absl::StripAsciiWhitespace(text), "'"));
    }
    LS_RETURN_IF_ERROR(AddHost(words[0], slots, place, hosts));
  }
  return absl::OkStatus();
}

std::string Quote(absl::string_view word) {
  return absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'");
}

}  // namespace

absl::StatusOr<std::vector<WorkerHost>> ReadHosts(const std::string& text) {
  std::vector<WorkerHost> hosts;
  std::error_code none;
  if (std::filesystem::is_regular_file(text, none)) {
    LS_RETURN_IF_ERROR(ReadFile(text, hosts));
    if (hosts.empty()) return absl::InvalidArgumentError(absl::StrCat(text, " names no host"));
    return hosts;
  }
  if (absl::StrContains(text, '/')) {
    return absl::InvalidArgumentError(absl::StrCat("there is no file ", text, " with hosts"));
  }
  for (absl::string_view part : absl::StrSplit(text, ',')) {
    const size_t colon = part.find(':');
    const absl::string_view slots = colon == absl::string_view::npos ? "1" : part.substr(colon + 1);
    LS_RETURN_IF_ERROR(AddHost(part.substr(0, colon), slots, absl::StrCat("the hosts '", text, "'"), hosts));
  }
  return hosts;
}

std::vector<std::string> SshWords(const SshTarget& target, const std::vector<std::string>& words) {
  std::vector<std::string> all = {
      target.self, "ssh-worker", "--host",         target.host,  "--ssh",
      target.ssh,  "--dir",      target.directory, "--cause-fd", absl::StrCat(target.cause_fd),
      "--"};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

std::string RemoteCommand(const std::vector<std::string>& words) {
  const std::string command =
      absl::StrJoin(words, " ", [](std::string* out, const std::string& word) { absl::StrAppend(out, Quote(word)); });
  return absl::StrCat("exec sh -c ",
                      Quote(absl::StrCat("IFS= read -r LOCKSTEP_TOKEN && export LOCKSTEP_TOKEN && exec ", command)));
}

}  // namespace lockstep::cli
