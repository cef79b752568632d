#include "deploy/cli/host_facts.h"

#include <cpuid.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/net/descriptors.h"
#include "deploy/cli/byte_units.h"

namespace lockstep::cli {
namespace {

constexpr int64_t kLittleMemory = int64_t{2} << 30;
// Enough for a chief of some 700 workers.
constexpr uint64_t kFewFiles = 4096;
constexpr char kPciDevices[] = "/sys/bus/pci/devices";

std::string FirstLine(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// The file of this process's control group (version 2), or of the one that a container shows as the root.
std::string GroupFile(const std::string& name) {
  absl::string_view group = "/";
  std::string line;
  for (std::ifstream file("/proc/self/cgroup"); std::getline(file, line);) {
    group = line;
    if (absl::ConsumePrefix(&group, "0::")) break;
    group = "/";
  }
  const std::string own = FirstLine(absl::StrCat("/sys/fs/cgroup", group, "/", name));
  return own.empty() ? FirstLine(absl::StrCat("/sys/fs/cgroup/", name)) : own;
}

double CoreQuota() {
  const std::vector<std::string> parts = absl::StrSplit(GroupFile("cpu.max"), ' ');
  double quota = 0, period = 0;
  if (parts.size() != 2 || !absl::SimpleAtod(parts[0], &quota) || !absl::SimpleAtod(parts[1], &period)) return 0;
  return period > 0 ? quota / period : 0;
}

int64_t AvailableMemory() {
  std::string line;
  for (std::ifstream file("/proc/meminfo"); std::getline(file, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "MemAvailable:")) continue;
    absl::ConsumeSuffix(&rest, "kB");
    int64_t kibibytes = 0;
    if (absl::SimpleAtoi(rest, &kibibytes)) return kibibytes * 1024;
  }
  return 0;
}

bool ShowsStacks() {
  const int page = memfd_create("lockstep-doctor", MFD_CLOEXEC);
  if (page < 0) return false;
  const bool readable = access(absl::StrCat("/proc/self/fd/", page).c_str(), R_OK) == 0;
  close(page);
  return readable && access("/proc/self/maps", R_OK) == 0;
}

bool ComputesAes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_AES) != 0;
}

bool HasNvidiaCard() {
  std::error_code error;
  for (const auto& device : std::filesystem::directory_iterator(kPciDevices, error)) {
    const std::string path = device.path().string();
    const bool display = absl::StartsWith(FirstLine(path + "/class"), "0x03");
    if (display && FirstLine(path + "/vendor") == "0x10de") return true;
  }
  return false;
}

std::vector<std::string> ReachableAddresses() {
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(first, &freeifaddrs);
  std::vector<std::string> addresses;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    const bool reachable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (!reachable || one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    char host[NI_MAXHOST] = {};
    if (getnameinfo(one->ifa_addr, sizeof(sockaddr_in), host, sizeof host, nullptr, 0, NI_NUMERICHOST) == 0) {
      addresses.emplace_back(absl::StrCat(host, " (", one->ifa_name, ")"));
    }
  }
  return addresses;
}

Finding MakeFinding(bool well, std::string what, std::string text, const std::string& otherwise) {
  if (well) return {Gravity::kOk, std::move(what), std::move(text)};
  return {Gravity::kWarning, std::move(what), absl::StrCat(text, "; ", otherwise)};
}

}  // namespace

HostFacts ReadHostFacts() {
  HostFacts facts;
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) facts.cores = CPU_COUNT(&cores);
  facts.core_quota = CoreQuota();
  facts.memory_bytes = AvailableMemory();
  if (!absl::SimpleAtoi(GroupFile("memory.max"), &facts.memory_limit_bytes)) facts.memory_limit_bytes = 0;
  facts.open_files = RaiseDescriptorLimit();
  facts.shows_stacks = ShowsStacks();
  facts.fast_encryption = ComputesAes();
  facts.has_nvidia_card = HasNvidiaCard();
  facts.addresses = ReachableAddresses();
  return facts;
}

std::vector<Finding> DescribeHost(const HostFacts& facts) {
  std::vector<Finding> findings;
  std::string cores = absl::StrCat(facts.cores);
  if (facts.core_quota > 0) absl::StrAppendFormat(&cores, ", of which the control group gives %.3g", facts.core_quota);
  findings.push_back(
      MakeFinding(facts.core_quota == 0 || facts.core_quota >= 1, "cores", std::move(cores),
                  "a worker computes with the job's cluster.cpu_threads, one at least, and slows the others "
                  "down while it is held back"));
  const bool limited = facts.memory_limit_bytes > 0 && facts.memory_limit_bytes < facts.memory_bytes;
  const int64_t memory = limited ? facts.memory_limit_bytes : facts.memory_bytes;
  findings.push_back(MakeFinding(memory >= kLittleMemory, "memory",
                                 absl::StrFormat("%.1f GiB%s", static_cast<double>(memory) / kGiB,
                                                 limited ? ", the control group's limit" : " available"),
                                 "`lockstep check JOB --plan` says what a worker of a job needs"));
  findings.push_back(
      MakeFinding(facts.open_files >= kFewFiles, "open files", absl::StrCat(facts.open_files),
                  "a chief needs four for each worker: raise the hard limit (ulimit -Hn, LimitNOFILE= of "
                  "systemd, --ulimit nofile= of containers)"));
  findings.push_back(MakeFinding(
      facts.shows_stacks, "dumps", facts.shows_stacks ? "stacks of a process that hangs can be read" : "none",
      "/proc or memfd_create is closed here, so the stacks of a process that hangs cannot be shown"));
  findings.push_back(
      MakeFinding(facts.fast_encryption, "encryption",
                  facts.fast_encryption ? "by the processor" : "slow: the processor does not compute AES",
                  "on a private network `security.peers: authenticated` is faster"));
  findings.push_back(MakeFinding(!facts.addresses.empty(), "network",
                                 facts.addresses.empty() ? "loopback alone" : absl::StrJoin(facts.addresses, ", "),
                                 "no other machine reaches a chief or worker here"));
  return findings;
}

}  // namespace lockstep::cli
