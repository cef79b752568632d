// Somebody who is not of the job, on real processes: what is told to him, and what he can do to it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/net/chief_channel.h"
#include "common/net/descriptors.h"
#include "protos/session.grpc.pb.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

constexpr char kSteps[] = "train.duration=4000steps";

// The digest of the job that nobody disturbed.
const std::string& Undisturbed() {
  static const std::string digest = [] {
    LocalJob job("undisturbed", kJob, {kSteps});
    job.RunUndisturbed(1);
    return job.Digest();
  }();
  return digest;
}

std::string AddressOf(const LocalJob& job) {
  std::ifstream file(job.directory() + "/chief/address");
  std::string address;
  file >> address;
  return address;
}

// Starts a chief and a worker, which train when this returns the chief's address.
std::string StartTraining(LocalJob& job) {
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(20);
  return AddressOf(job);
}

void CheckUndisturbed(LocalJob& job) {
  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.Digest() == Undisturbed());
}

// A gRPC server with a key of its own at the address of a chief that is gone. Ends every call that comes to it as a
// chief ends one with a wrong token.
class FalseChief final : public proto::Session::Service {
 public:
  explicit FalseChief(const std::string& address) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, MakeChiefCredentials("a token of his own", [this] { ++heard; }).value(), &port);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    REQUIRE(port != 0);
  }
  ~FalseChief() override { server_->Shutdown(std::chrono::system_clock::now()); }

  std::atomic<int> heard{0};  // calls, whatever secret they show

 private:
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("stranger: who takes the port of a dead chief is told nothing, and ends no worker", "[e2e]") {
  LocalJob job("job", kJob, {kSteps});
  const std::string address = StartTraining(job);
  job.Kill("chief");
  const Result gone = Run({"status", "--dir", job.directory()});
  {
    FalseChief stranger(address);
    const Result taken = Run({"status", "--dir", job.directory()});
    CHECK(taken.code == gone.code);
    const std::string token = job.directory() + "/chief/token";
    CHECK(Run({"stop", "--chief", address, "--token-file", token}).code == kExitBadToken);
    WaitUntil("the worker has met the stranger", [&] {
      REQUIRE(job.worker(0).Running());
      return absl::StrContains(job.LogOf("worker-0"), "is not the job's chief");
    });
    CHECK(stranger.heard == 0);
  }

  job.StartChief(1);

  CheckUndisturbed(job);
}

// A connection to `address` that takes nothing; its socket.
int ConnectTo(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  REQUIRE(fd >= 0);
  REQUIRE(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  return fd;
}

bool EndedByPeer(int fd) {
  char byte = 0;
  const ssize_t n = recv(fd, &byte, 1, MSG_DONTWAIT);
  return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
}

int64_t ResidentMib(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  int64_t whole = 0;
  int64_t resident = 0;
  file >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

TEST_CASE("stranger: a thousand connections that say nothing, half a hello or garbage are shown out", "[e2e]") {
  LocalJob job("job", kJob, {kSteps});
  const std::string address = StartTraining(job);
  REQUIRE(RaiseDescriptorLimit() > 2000);
  const int64_t before = ResidentMib(job.chief().pid());

  std::vector<int> strangers;
  for (int i = 0; i < 1000; ++i) {
    strangers.push_back(ConnectTo(address));
    const std::string begin = i % 3 == 0 ? "" : i % 3 == 1 ? "\x16\x03\x01\x02" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    send(strangers.back(), begin.data(), begin.size(), MSG_NOSIGNAL);
  }
  CHECK(ResidentMib(job.chief().pid()) - before < 64);
  WaitUntil("all of them are shown out",
            [&] { return std::all_of(strangers.begin(), strangers.end(), EndedByPeer) || !job.chief().Running(); });
  for (const int fd : strangers) close(fd);

  CheckUndisturbed(job);
}

}  // namespace
}  // namespace lockstep::e2e
