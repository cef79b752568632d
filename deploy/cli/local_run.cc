#include "deploy/cli/local_run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/server/address_file.h"
#include "common/checkpoint_format/naming.h"
#include "common/clock/clock.h"
#include "common/digest/random_secret.h"
#include "common/job_place/job_place.h"
#include "common/log/log.h"
#include "deploy/cli/notice_options.h"
#include "deploy/cli/own_program.h"

namespace lockstep::cli {
namespace {

// Of questions that are asked again and again; a report is made once.
constexpr absl::Duration kLeastAskLimit = absl::Milliseconds(200);
constexpr absl::Duration kMostAskLimit = absl::Seconds(2);
constexpr int kTailLines = 15;
constexpr std::streamoff kTailBytes = 64 << 10;  // of a log of any length
constexpr char kAddressPrefix[] = "run-";
constexpr char kAddressSuffix[] = ".address";
constexpr std::chrono::hours kOldAddress(24);

// Removes what runs that were killed left behind. A chief that lives writes its file again.
void RemoveOldAddresses(const std::string& directory) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::directory_iterator entry(absl::StrCat(directory, "/", layout::kLogs), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!absl::StartsWith(name, kAddressPrefix) || !absl::StrContains(name, kAddressSuffix)) continue;
    std::error_code none;
    const auto written = fs::last_write_time(entry->path(), none);
    if (!none && fs::file_time_type::clock::now() - written > kOldAddress) fs::remove(entry->path(), none);
  }
}

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace

LocalRun::LocalRun(RunOptions options, std::string directory, std::string folder, int workers)
    : options_(std::move(options)),
      directory_(std::move(directory)),
      folder_(std::move(folder)),
      workers_(workers),
      self_(OwnProgram()),
      ask_limit_(kLeastAskLimit, kMostAskLimit) {
  RemoveOldAddresses(folder_);
  id_ = RandomSecretHex(8).value_or(absl::StrCat(getpid()));
  for (int i = 0; i < workers_; ++i) {
    std::error_code none;
    const auto size = std::filesystem::file_size(LogPath({.chief = false, .index = i}), none);
    earlier_log_bytes_.push_back(none ? 0 : static_cast<std::streamoff>(size));
  }
}

LocalRun::~LocalRun() { chief::RemoveAddressFile(AddressPath()); }

std::vector<std::string> LocalRun::Command(const supervisor::Role& role) const {
  std::vector<std::string> words = role.chief ? ChiefWords() : WorkerWords(role.index);
  if (!role.chief && !options_.hosts.empty()) {
    return SshWords({.self = self_,
                     .ssh = options_.ssh,
                     .host = options_.hosts[static_cast<size_t>(role.index)].host,
                     .directory = directory_,
                     .cause_fd = supervisor::kCauseFd},
                    words);
  }
  words.insert(words.begin(), self_);
  words.insert(words.end(), {"--cause-fd", absl::StrCat(supervisor::kCauseFd)});
  if (!options_.record_directory.empty()) words.insert(words.end(), {"--record", options_.record_directory});
  return words;
}

std::vector<std::string> LocalRun::ChiefWords() const {
  std::vector<std::string> words = {"chief",          options_.job_path,    "--dir",
                                    directory_,       "--expected-workers", absl::StrCat(workers_),
                                    "--address-file", AddressPath(),        "--stop-on-sigterm"};
  if (!options_.listen.empty()) words.insert(words.end(), {"--listen", options_.listen});
  for (const std::string& set : options_.overrides) words.insert(words.end(), {"--set", set});
  return words;
}

std::vector<std::string> LocalRun::WorkerWords(int index) const {
  const bool here = options_.hosts.empty();
  std::vector<std::string> words;
  if (here) {
    words = {"worker", "--chief-file", AddressPath(), "--token-file", TokenPath()};
  } else {
    // Its input ends with the connection, which is all that it hears of this process.
    words = {options_.program, "worker", "--chief", options_.listen, "--notice-eof"};
    const std::vector<std::string> style = LogStyleWords();
    words.insert(words.begin(), style.begin(), style.end());
  }
  const int local_rank = here ? index : options_.hosts[static_cast<size_t>(index)].local_rank;
  words.insert(words.end(), {"--name", supervisor::RoleName({.chief = false, .index = index}), "--device",
                             options_.device, "--local-rank", absl::StrCat(local_rank),
                             // A chief may read its data for long before it is there; that it lives is watched here.
                             "--connect-timeout", "86400"});
  for (const std::string& root : options_.data_roots) words.insert(words.end(), {"--data-root", root});
  const std::vector<std::string> notices = NoticeWords(options_.notices);
  words.insert(words.end(), notices.begin(), notices.end());
  return words;
}

std::string LocalRun::LogPath(const supervisor::Role& role) const {
  if (role.chief) return "";
  return absl::StrCat(folder_, "/", layout::kLogs, "/", supervisor::RoleName(role), ".log");
}

std::optional<int64_t> LocalRun::ReadStep() {
  auto status = AskChief();
  if (!status.has_value()) return std::nullopt;
  return static_cast<int64_t>(status->step());
}

std::string LocalRun::WhyHeld(const supervisor::Role& role) {
  const bool here = options_.hosts.empty();
  std::error_code none;
  if (here && !options_.notices.file.empty() && std::filesystem::exists(options_.notices.file, none)) {
    return absl::StrCat("was sent away: it is started again when ", options_.notices.file, " is removed");
  }
  const auto status = AskChief();
  if (!status.has_value()) return "";
  const std::string host = here ? HostName() : options_.hosts[static_cast<size_t>(role.index)].host;
  const bool drained = std::any_of(status->drained().begin(), status->drained().end(), [&](const auto& target) {
    return target == supervisor::RoleName(role) || target == host;
  });
  return drained ? "is drained: it is started again when `lockstep drain --undo` lets it come back" : "";
}

void LocalRun::ReportExit(const supervisor::ReportExit& exited) {
  auto client = Connect();
  if (!client.ok()) return;
  proto::ExitReport report;
  report.set_name(supervisor::RoleName(exited.role));
  report.set_signal(exited.how.signal);
  report.set_exit_code(exited.how.code);
  report.set_last(exited.last);
  report.set_cause(exited.cause);
  (*client)->ReportExit(report, kMostAskLimit).IgnoreError();
}

void LocalRun::PrintTail(const supervisor::Role& role) const {
  std::ifstream in(LogPath(role), std::ios::ate);
  const std::streamoff size = in.tellg();
  in.seekg(std::max(earlier_log_bytes_[static_cast<size_t>(role.index)], size - kTailBytes));
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  if (lines.empty()) return;
  if (lines.size() > kTailLines) lines.erase(lines.begin(), lines.end() - kTailLines);
  LogLine(LogLevel::info, absl::StrCat("the last lines of ", LogPath(role), ":\n", absl::StrJoin(lines, "\n")));
}

std::string LocalRun::AddressFile() const {
  return absl::StrCat(layout::kLogs, "/", kAddressPrefix, id_, kAddressSuffix);
}

std::string LocalRun::AddressPath() const { return absl::StrCat(folder_, "/", AddressFile()); }

std::string LocalRun::TokenPath() const { return absl::StrCat(directory_, "/", layout::kToken); }

absl::StatusOr<std::unique_ptr<AdminClient>> LocalRun::Connect() const {
  return AdminClient::ForDirectory(directory_, IsInBucket(directory_) ? AddressPath() : AddressFile());
}

std::optional<proto::StatusReply> LocalRun::AskChief() {
  if (client_ == nullptr) {
    auto client = Connect();
    if (!client.ok()) return std::nullopt;
    client_ = *std::move(client);
  }
  const absl::Time begin = SteadyNow();
  auto reply = client_->Status(ask_limit_.limit());
  if (reply.ok()) {
    ask_limit_.Answered(SteadyNow() - begin);
    return *std::move(reply);
  }
  ask_limit_.Missed();
  client_ = nullptr;
  return std::nullopt;
}

}  // namespace lockstep::cli
