// Somebody who is not of the job, on real processes: what is told to him, and what he can do to it.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/net/chief_channel.h"
#include "common/net/chief_key.h"
#include "common/net/delaying_proxy.h"
#include "common/net/descriptors.h"
#include "common/net/sample_hello.h"
#include "common/net/token.h"
#include "protos/session.grpc.pb.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

// A job that lasts, of small steps.
std::vector<std::string> LongJob(const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = {"train.duration=4000steps", "train.global_batch_size=8",
                                       "train.logical_shards=2", "checkpoint.every=200steps"};
  settings.insert(settings.end(), more.begin(), more.end());
  return settings;
}

// The digest of the job that nobody disturbed.
const std::string& Undisturbed() {
  static const std::string digest = [] {
    LocalJob job("undisturbed", kJob, LongJob());
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

// Until two workers are members and have made some steps.
void WaitUntilTwoStep(LocalJob& job) {
  uint64_t step = 0;
  job.WaitForStatus("two workers step together", [&](const proto::StatusReply& status) {
    const auto steps = [](const proto::WorkerStatus& worker) { return worker.state() == "member"; };
    if (std::count_if(status.workers().begin(), status.workers().end(), steps) < 2) return false;
    if (step == 0) step = status.step();
    return status.step() > step + 5;
  });
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
  LocalJob job("job", kJob, LongJob());
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

// A connection to `address` that takes nothing; its socket, or -1.
int TryToConnect(const std::string& address) {
  const size_t colon = address.rfind(':');
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(colon + 1))));
  inet_pton(AF_INET, address.substr(0, colon).c_str(), &to.sin_addr);
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0) return fd;
  close(fd);
  return -1;
}

int ConnectTo(const std::string& address) {
  const int fd = TryToConnect(address);
  REQUIRE(fd >= 0);
  return fd;
}

// Whether the other end has closed it; takes what it said before.
bool EndedByPeer(int fd) {
  char said[4096];
  ssize_t n = 0;
  do n = recv(fd, said, sizeof said, MSG_DONTWAIT);
  while (n > 0);
  return n == 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

int64_t ResidentMib(pid_t pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/statm"));
  int64_t whole = 0;
  int64_t resident = 0;
  file >> whole >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

TEST_CASE("stranger: eleven thousand connections hinder no worker, and cost the chief less than 64 MiB", "[e2e]") {
  const uint64_t descriptors = RaiseDescriptorLimit();
  const int silent = static_cast<int>(std::min<uint64_t>(10000, descriptors - 1200));
  LocalJob job("job", kJob, LongJob());
  job.Override("cluster.workers=2:2");  // it waits for the others that are killed
  job.StartChief(2);
  for (int i = 0; i < 2; ++i) job.StartWorker(i);
  job.WaitForStep(20);
  const std::string address = AddressOf(job);
  const std::string token = job.directory() + "/chief/token";
  const int64_t before = ResidentMib(job.chief().pid());
  job.Kill("worker-1");

  std::vector<int> strangers;
  const auto come = [&](const std::string& begin) {
    strangers.push_back(ConnectTo(address));
    send(strangers.back(), begin.data(), begin.size(), MSG_NOSIGNAL);
  };
  // As somebody on the way could have recorded it.
  const CallerKey key = CallerKeyOf(ReadCallerToken(token).value(), Role::kJoin).value();
  const std::string recorded = SampleHello(ServerNameOf(key.secret));
  for (int i = 0; i < silent; ++i) {
    come(i % 3 == 0 ? "" : i % 3 == 1 ? "\x16\x03\x01\x02" : "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  }
  for (int i = 0; i < 1000; ++i) come(recorded);
  job.StartWorker(2);
  WaitUntilTwoStep(job);
  // AddressSanitizer keeps what was freed.
  if (std::getenv("LOCKSTEP_SANITIZER") == nullptr) CHECK(ResidentMib(job.chief().pid()) - before < 64);
  job.Kill("worker-2");
  job.WaitForStatus("strangers are counted", [&](const proto::StatusReply& status) {
    return status.refused_callers() >= static_cast<uint64_t>(silent) / 2;
  });
  WaitUntil("all of them are shown out", [&] { return std::all_of(strangers.begin(), strangers.end(), EndedByPeer); });
  for (const int fd : strangers) close(fd);
  job.StartWorker(1);
  CHECK(job.WaitForEnd("worker-1") == Ended{});
  CheckUndisturbed(job);
  const std::vector<std::string> named = absl::StrSplit(job.LogOf("chief"), "access: refused 127.0.0.1:");
  CHECK(named.size() > 10);
  CHECK(named.size() < 100);  // ten a minute
}

// Where the process listens on 127.0.0.1, as any user of the machine can see.
std::vector<std::string> ListeningAddresses(pid_t pid) {
  std::set<std::string> sockets;
  for (const auto& entry : std::filesystem::directory_iterator(absl::StrCat("/proc/", pid, "/fd"))) {
    std::error_code gone;
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    if (absl::StartsWith(target, "socket:[")) sockets.insert(target.substr(8, target.size() - 9));
  }
  std::ifstream table("/proc/net/tcp");
  std::vector<std::string> addresses;
  for (std::string line; std::getline(table, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (fields.size() < 10 || fields[3] != "0A" || sockets.count(fields[9]) == 0) continue;
    addresses.push_back(absl::StrCat("127.0.0.1:", std::stoi(fields[1].substr(9), nullptr, 16)));
  }
  return addresses;
}

// Connects again and again, says something else each time, and stays until the next but fifty.
class Pest {
 public:
  explicit Pest(std::vector<std::string> addresses) : addresses_(std::move(addresses)), thread_([this] { Run(); }) {}
  ~Pest() {
    ended_ = true;
    thread_.join();
  }
  int visits() const { return visits_; }

 private:
  void Run() {
    // Nothing; garbage; half of what a rank says, and the whole of it without the secret; a ClientHello; the frames
    // that Gloo took: a message for an unknown buffer, and one that says nothing.
    const std::vector<std::string> words = {
        "",
        std::string(4096, 'g'),
        "LSpeer01r",
        "LSpeer01r" + std::string(39, '\1'),
        "\x16\x03\x01\x02\x01\x01",
        std::string(8, '\x30') + std::string("\1\0\0\0\0\0\0\0", 8) + std::string(32, '\x7f'),
        std::string(48, '\0')};
    std::deque<int> open;
    while (!ended_) {
      const std::string& address = addresses_[static_cast<size_t>(visits_) % addresses_.size()];
      const int fd = TryToConnect(address);
      if (fd < 0) continue;
      open.push_back(fd);
      const std::string& word = words[static_cast<size_t>(visits_) / addresses_.size() % words.size()];
      send(open.back(), word.data(), word.size(), MSG_NOSIGNAL);
      // Until it is shown out, or clearly not.
      pollfd answer = {.fd = fd, .events = POLLIN, .revents = 0};
      poll(&answer, 1, /*milliseconds=*/10);
      ++visits_;
      if (open.size() <= 50) continue;
      close(open.front());
      open.pop_front();
    }
    for (const int fd : open) close(fd);
  }

  const std::vector<std::string> addresses_;
  std::atomic<bool> ended_{false};
  std::atomic<int> visits_{0};
  std::thread thread_;
};

TEST_CASE("stranger: who pesters a worker's port ends no generation, and hinders none from forming", "[e2e]") {
  LocalJob job("job", kJob, LongJob({"security.peers=encrypted"}));
  job.StartChief(1);
  job.StartWorker(0);
  job.StartWorker(1);
  job.WaitForStep(20);
  const std::vector<std::string> addresses = ListeningAddresses(job.worker(0).pid());
  REQUIRE(addresses.size() == 1);

  const Pest pest(addresses);
  for (int life = 0; life < 3; ++life) {
    const int before = pest.visits();
    WaitUntil("a hundred visits more", [&] { return pest.visits() > before + 100; });
    job.Kill("worker-1");
    job.StartWorker(1);
    WaitUntilTwoStep(job);
  }

  CHECK(job.WaitForEnd("worker-1") == Ended{});
  CheckUndisturbed(job);
  const WorkerStatsFile stats = job.Stats();
  for (const auto& worker : stats.workers()) CHECK(worker.crashes() == 0);
}

TEST_CASE("stranger: who changes bytes between chief and worker only makes them connect again", "[e2e]") {
  LocalJob job("job", kJob, LongJob());
  job.StartChief(1);
  WaitUntil("the chief has an address", [&] { return !AddressOf(job).empty(); });
  const std::string address = AddressOf(job);
  // A bit in the middle of a share, of the first five connections that get so far; of others one in what they begin
  // with.
  std::atomic<int> flipped_late{0};
  std::atomic<int> connections{0};
  const auto flip = [&](bool to_target, uint64_t offset, std::string& bytes) {
    constexpr uint64_t kAt = 100'000;
    if (to_target && offset == 0 && ++connections % 4 == 3) bytes.back() ^= 0x01;
    if (kAt < offset || kAt >= offset + bytes.size() || ++flipped_late > 5) return;
    bytes[kAt - offset] ^= 0x01;
  };
  const DelayingProxy way(std::stoi(address.substr(address.rfind(':') + 1)), absl::ZeroDuration(), flip);
  Process worker({kLockstep, "worker", "--chief", way.address(), "--token-file", job.directory() + "/chief/token"},
                 job.directory() + ".worker.log");

  CHECK(worker.Wait(absl::Minutes(5)) == Ended{});
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.Digest() == Undisturbed());
  CHECK(flipped_late >= 5);
  CHECK(connections >= 8);
}

}  // namespace
}  // namespace lockstep::e2e
