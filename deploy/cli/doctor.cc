#include "deploy/cli/doctor.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/job/findings.h"
#include "common/net/rpc.h"
#include "common/status/exit_code.h"
#include "common/storage/descriptor.h"
#include "common/version/version.h"
#include "deploy/cli/check_storage.h"
#include "deploy/cli/host_facts.h"
#include "deploy/cli/machine.h"
#include "deploy/cli/place_option.h"
#include "deploy/cli/print_findings.h"
#include "worker/session/peer_host.h"

namespace lockstep::cli {
namespace {

constexpr int kChiefConnectLimitMs = 3000;

struct DoctorOptions {
  std::string directory;
  std::string chief;
};

// OK when something listens there. Blocks for seconds.
absl::Status Connects(const HostPort& place) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(place.host.c_str(), absl::StrCat(place.port).c_str(), &hints, &found) != 0) found = nullptr;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, &freeaddrinfo);
  int error = ENOENT;
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    const Descriptor descriptor(socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(descriptor.get(), to->ai_addr, to->ai_addrlen) == 0) return absl::OkStatus();
    error = errno;
    if (error != EINPROGRESS) continue;
    pollfd event = {descriptor.get(), POLLOUT, 0};
    error = ETIMEDOUT;
    socklen_t bytes = sizeof error;
    if (poll(&event, 1, kChiefConnectLimitMs) == 1) getsockopt(descriptor.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
    if (error == 0) return absl::OkStatus();
  }
  return absl::UnavailableError(std::strerror(error));
}

void LookForChief(const std::string& chief, Findings& findings) {
  const absl::StatusOr<HostPort> place = ParseHostPort(chief);
  if (!place.ok()) return findings.Error("chief", place.status(), kExitUsage);
  const absl::StatusOr<std::string> own = worker::AddressTowards(chief);
  if (!own.ok()) return findings.Error("chief", own.status(), kExitChiefUnreachable);
  if (const absl::Status connected = Connects(*place); !connected.ok()) {
    return findings.Error(
        "chief",
        absl::UnavailableError(
            absl::StrCat("nothing answers at ", chief, " (", connected.message(),
                         "): does the chief run, does it listen there (--listen), does a firewall let it through?")),
        kExitChiefUnreachable);
  }
  findings.Ok("chief", absl::StrCat("something listens at ", chief, "; workers of this machine listen on ", *own,
                                    " unless --peer-host says otherwise"));
}

int Doctor(const DoctorOptions& options) {
  const HostFacts facts = ReadHostFacts();
  Findings findings;
  findings.Ok("program", kVersion);
  for (Finding& finding : DescribeHost(facts)) findings.Add(std::move(finding));
  AddMachine(facts.has_nvidia_card, findings);
  if (!options.directory.empty()) CheckStorage(options.directory, findings);
  if (!options.chief.empty()) LookForChief(options.chief, findings);
  PrintFindings(findings);
  PrintCounts(findings);
  return findings.exit_code();
}

}  // namespace

void AddDoctor(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("doctor", "Say what this machine lacks for a chief or workers");
  auto options = std::make_shared<DoctorOptions>();
  AddPlace(*command, "--dir", options->directory,
           "Also prove that jobs are safe in this place: a directory, or s3://bucket/prefix");
  command->add_option("--chief", options->chief, "Also try to reach a chief, HOST:PORT");
  command->callback([options, &exit_code] { exit_code = Doctor(*options); });
}

}  // namespace lockstep::cli
