#include "tests/e2e/hosts.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"

namespace lockstep::e2e {
namespace {

constexpr absl::Duration kIpLimit = absl::Seconds(20);
constexpr char kSwitch[] = "switch0";
constexpr char kNowhere[] = "02:00:00:00:0f:ff";
constexpr char kIp[] = "/usr/sbin/ip";
constexpr char kTc[] = "/usr/sbin/tc";

void WriteTo(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// Puts this process into a network of its own; as a user without rights, into a user namespace first.
bool EnterOwnNetwork() {
  if (unshare(CLONE_NEWNET | CLONE_NEWNS) == 0) return true;
  const std::string user = absl::StrCat("0 ", getuid(), " 1");
  const std::string group = absl::StrCat("0 ", getgid(), " 1");
  if (unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  WriteTo("/proc/self/setgroups", "deny");
  WriteTo("/proc/self/uid_map", user);
  WriteTo("/proc/self/gid_map", group);
  return getuid() == 0;
}

int OpenOwnNetwork() { return open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC); }

// Runs a command to its end, in `network` unless that is negative. What it said, where it failed.
std::string RunIn(int network, const std::vector<std::string>& words) {
  const std::string log = absl::StrCat(std::getenv("TEST_TMPDIR"), "/ip.", getpid());
  std::filesystem::remove(log);
  Process process(words, [&] {
    if (network >= 0 && setns(network, CLONE_NEWNET) != 0) _exit(126);
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
  });
  if (process.Wait(kIpLimit) == Ended{}) return "";
  std::ifstream in(log);
  return absl::StrCat(absl::StrJoin(words, " "), ": ", std::string(std::istreambuf_iterator<char>(in), {}));
}

void Require(const std::string& failure) {
  if (!failure.empty()) throw std::runtime_error(failure);
}

std::string Port(int host) { return absl::StrCat("port", host); }

}  // namespace

bool Hosts::Allowed(const std::string& what) {
  static const std::string why = [] {
    if (!std::filesystem::exists(kIp)) return std::string("needs iproute2");
    if (!EnterOwnNetwork()) return std::string("needs the right to make network namespaces");
    const std::string failure = RunIn(-1, {kIp, "link", "add", "name", "probe0", "type", "bridge"});
    if (failure.empty()) Require(RunIn(-1, {kIp, "link", "del", "probe0"}));
    return failure;
  }();
  if (!why.empty()) std::cout << "SKIPPED: '" << what << "' " << why << "\n";
  return why.empty();
}

Hosts::Hosts(int count) : hosts_(static_cast<size_t>(count)) {
  Ip({"link", "set", "lo", "up"});
  Ip({"link", "add", "name", kSwitch, "type", "bridge"});
  Ip({"address", "add", "10.77.0.254/24", "dev", kSwitch});
  Ip({"link", "set", kSwitch, "up"});
  const int own = OpenOwnNetwork();
  for (int i = 0; i < count; ++i) {
    Host& host = hosts_[static_cast<size_t>(i)];
    host.address = absl::StrCat("10.77.0.", i + 1);
    if (unshare(CLONE_NEWNET) != 0) throw std::runtime_error("no further network namespace can be had");
    host.network = OpenOwnNetwork();
    if (setns(own, CLONE_NEWNET) != 0) throw std::runtime_error("the way back into the test's network is shut");
    Ip({"link", "add", "name", Port(i), "type", "veth", "peer", "name", "cable"});
    Ip({"link", "set", "cable", "netns", absl::StrCat("/proc/", getpid(), "/fd/", host.network)});
    Ip({"link", "set", Port(i), "master", kSwitch, "up"});
    IpOn(i, {"link", "set", "lo", "up"});
    IpOn(i, {"link", "set", "cable", "name", "eth0"});
    IpOn(i, {"address", "add", host.address + "/24", "dev", "eth0"});
    IpOn(i, {"link", "set", "eth0", "up"});
  }
  close(own);
}

Hosts::~Hosts() {
  RunIn(-1, {kIp, "link", "del", kSwitch});
  for (size_t i = 0; i < hosts_.size(); ++i) {
    RunIn(-1, {kIp, "link", "del", Port(static_cast<int>(i))});
    close(hosts_[i].network);
  }
}

Process Hosts::Start(int host, const std::vector<std::string>& words, const std::string& log) const {
  const int network = hosts_[static_cast<size_t>(host)].network;
  return Process(words, [&words, &log, network, host] {
    if (setns(network, CLONE_NEWNET) != 0 || unshare(CLONE_NEWUTS) != 0) _exit(126);
    const std::string name = absl::StrCat("host", host);
    if (sethostname(name.data(), name.size()) != 0) _exit(126);
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
  });
}

void Hosts::Isolate(int host) const { Ip({"link", "set", Port(host), "nomaster"}); }
void Hosts::Rejoin(int host) const { Ip({"link", "set", Port(host), "master", kSwitch}); }
void Hosts::Unplug(int host) const { Ip({"link", "set", Port(host), "down"}); }
void Hosts::Plug(int host) const { Ip({"link", "set", Port(host), "up"}); }

void Hosts::DropTo(int from, int to) const {
  IpOn(from, {"neigh", "replace", Address(to), "lladdr", kNowhere, "dev", "eth0", "nud", "permanent"});
}
void Hosts::DeliverTo(int from, int to) const { IpOn(from, {"neigh", "del", Address(to), "dev", "eth0"}); }

void Hosts::CutPair(int a, int b) const {
  DropTo(a, b);
  DropTo(b, a);
}
void Hosts::MendPair(int a, int b) const {
  DeliverTo(a, b);
  DeliverTo(b, a);
}

bool Hosts::SlowDown(int host, const std::string& rate) const {
  const std::vector<std::string> shape = {"root", "tbf", "rate", rate, "burst", "64k", "latency", "200ms"};
  std::vector<std::string> in = {kTc, "qdisc", "replace", "dev", Port(host)};
  std::vector<std::string> out = {kTc, "qdisc", "replace", "dev", "eth0"};
  in.insert(in.end(), shape.begin(), shape.end());
  out.insert(out.end(), shape.begin(), shape.end());
  return RunIn(-1, in).empty() && RunIn(hosts_[static_cast<size_t>(host)].network, out).empty();
}

Hosts::CableEnds Hosts::OpenCable(int host) const {
  const std::string end = absl::StrCat("end", host);
  const std::string plug = absl::StrCat("plug", host);
  Ip({"link", "add", "name", plug, "type", "veth", "peer", "name", end});
  Ip({"link", "set", end, "up"});
  Isolate(host);
  Ip({"link", "set", plug, "master", kSwitch, "up"});
  return {.at_host = Port(host), .at_switch = end};
}

void Hosts::CloseCable(int host) const {
  Ip({"link", "del", absl::StrCat("plug", host)});
  Rejoin(host);
}

void Hosts::Readdress(int host, const std::string& address) {
  IpOn(host, {"address", "del", Address(host) + "/24", "dev", "eth0"});
  IpOn(host, {"address", "add", address + "/24", "dev", "eth0"});
  hosts_[static_cast<size_t>(host)].address = address;
}

void Hosts::GiveUpConnectionsAfter(int host, int retries) const {
  // The file is that of the network of whoever opens it.
  const std::string command = absl::StrCat("echo ", retries, " >/proc/sys/net/ipv4/tcp_retries2");
  Require(RunIn(hosts_[static_cast<size_t>(host)].network, {"/bin/sh", "-c", command}));
}

void Hosts::Ip(const std::vector<std::string>& words) const {
  std::vector<std::string> all = {kIp};
  all.insert(all.end(), words.begin(), words.end());
  Require(RunIn(-1, all));
}

void Hosts::IpOn(int host, const std::vector<std::string>& words) const {
  std::vector<std::string> all = {kIp};
  all.insert(all.end(), words.begin(), words.end());
  Require(RunIn(hosts_[static_cast<size_t>(host)].network, all));
}

}  // namespace lockstep::e2e
