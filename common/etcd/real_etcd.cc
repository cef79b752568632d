#include "common/etcd/real_etcd.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/clock/clock.h"
#include "common/etcd/etcd_client.h"

namespace lockstep {
namespace {

// Of the loopback, free a moment ago, and below those that connections are given.
int FreePort() {
  static std::mt19937 random(std::random_device{}());
  for (int attempt = 0; attempt < 100; ++attempt) {
    const int port = std::uniform_int_distribution<int>(15000, 29999)(random);
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in place = {.sin_family = AF_INET,
                               .sin_port = htons(static_cast<uint16_t>(port)),
                               .sin_addr = {htonl(INADDR_LOOPBACK)},
                               .sin_zero = {}};
    const bool bound = bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
    close(listener);
    if (bound) return port;
  }
  throw std::runtime_error("no free port");
}

void Shell(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error(absl::StrCat("failed: ", command));
}

}  // namespace

RealEtcd::RealEtcd(std::string folder, std::string certificates)
    : folder_(std::move(folder)), certificates_(std::move(certificates)), port_(FreePort()), peer_port_(FreePort()) {
  std::filesystem::remove_all(folder_);
  std::filesystem::create_directories(folder_);
  Start();
}

std::string RealEtcd::endpoint() const { return absl::StrCat("127.0.0.1:", port_); }

std::string RealEtcd::Url(const std::string& prefix) const {
  return absl::StrCat(certificates_.empty() ? "http://" : "https://", endpoint(), "/", prefix);
}

void RealEtcd::Start() {
  const std::string peers = absl::StrCat("http://127.0.0.1:", peer_port_);
  const std::string clients = absl::StrCat(certificates_.empty() ? "http://" : "https://", endpoint());
  std::vector<std::string> words = {"etcd",
                                    "--name=one",
                                    absl::StrCat("--data-dir=", folder_, "/data"),
                                    "--unsafe-no-fsync",
                                    "--logger=zap",
                                    "--log-outputs=stderr",
                                    absl::StrCat("--listen-client-urls=", clients),
                                    absl::StrCat("--advertise-client-urls=", clients),
                                    absl::StrCat("--listen-peer-urls=", peers),
                                    absl::StrCat("--initial-advertise-peer-urls=", peers),
                                    absl::StrCat("--initial-cluster=one=", peers)};
  if (!certificates_.empty()) {
    words.push_back(absl::StrCat("--cert-file=", certificates_, "/server.crt"));
    words.push_back(absl::StrCat("--key-file=", certificates_, "/server.key"));
    words.push_back(absl::StrCat("--trusted-ca-file=", certificates_, "/ca.crt"));
    words.push_back("--client-cert-auth");
  }
  const std::string log = folder_ + "/log";
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  process_ = fork();
  if (process_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    execvp(argv[0], argv.data());
    dprintf(STDERR_FILENO, "cannot start etcd; it is in Debian's etcd-server (deploy/packages.sh test)\n");
    _exit(127);
  }
  const absl::Time until = SteadyNow() + absl::Seconds(60);
  while (!Serves()) {
    const bool ended = waitpid(process_, nullptr, WNOHANG) != 0;
    if (!ended && SteadyNow() < until) continue;
    if (ended) process_ = 0;
    std::ifstream in(log, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    throw std::runtime_error(
        absl::StrCat("etcd does not serve: ", text.substr(text.size() - std::min<size_t>(text.size(), 2000))));
  }
}

bool RealEtcd::Serves() const {
  const auto client = EtcdClient::Open(Url("probe"));
  return client.ok() && (*client)->Get("probe").ok();
}

void RealEtcd::Kill() {
  if (process_ == 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
  process_ = 0;
}

void MakeCertificates(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const std::string enter = absl::StrCat("cd ", folder, " && exec >openssl.log 2>&1 && ");
  Shell(enter + "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=authority -keyout ca.key -out ca.crt");
  for (const std::string name : {"server", "client"}) {
    std::ofstream(absl::StrCat(folder, "/", name, ".ext"))
        << "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n";
    Shell(absl::StrCat(enter, "openssl req -newkey rsa:2048 -nodes -subj /CN=", name, " -keyout ", name, ".key -out ",
                       name, ".csr && openssl x509 -req -in ", name,
                       ".csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -out ", name, ".crt -extfile ", name,
                       ".ext"));
  }
}

void UseCertificates(const std::string& folder) {
  setenv("ETCDCTL_CACERT", (folder + "/ca.crt").c_str(), 1);
  setenv("ETCDCTL_CERT", (folder + "/client.crt").c_str(), 1);
  setenv("ETCDCTL_KEY", (folder + "/client.key").c_str(), 1);
}

}  // namespace lockstep
