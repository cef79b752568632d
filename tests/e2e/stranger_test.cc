// Somebody who is not of the job, on real processes: what is told to him, and what he can do to it.
#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "common/net/chief_channel.h"
#include "protos/session.grpc.pb.h"
#include "tests/e2e/commands.h"
#include "tests/e2e/local_job.h"

namespace lockstep::e2e {
namespace {

constexpr char kSteps[] = "train.duration=3000steps";

std::string AddressOf(const LocalJob& job) {
  std::ifstream file(job.directory() + "/chief/address");
  std::string address;
  file >> address;
  return address;
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

TEST_CASE("stranger: who takes the port of a dead chief is told nothing and ends no worker", "[e2e]") {
  LocalJob undisturbed("undisturbed", kJob, {kSteps});
  undisturbed.RunUndisturbed(1);
  LocalJob job("job", kJob, {kSteps});
  job.StartChief(1);
  job.StartWorker(0);
  job.WaitForStep(20);
  const std::string address = AddressOf(job);
  job.Kill("chief");
  {
    FalseChief stranger(address);
    WaitUntil("the worker has met the stranger", [&] {
      REQUIRE(job.worker(0).Running());
      return absl::StrContains(job.LogOf("worker-0"), "is not the job's chief");
    });
    CHECK(stranger.heard == 0);
  }

  job.StartChief(1);

  CHECK(job.WaitForEnd("worker-0") == Ended{});
  CHECK(job.WaitForEnd("chief") == Ended{});
  CHECK(job.Digest() == undisturbed.Digest());
}

}  // namespace
}  // namespace lockstep::e2e
