#include "worker/session/chief_client.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"

namespace lockstep::worker {
namespace {

// A chief that sends one chunk, then waits for the end of the call, or ends it with the status that the test wants.
class OneChunk final : public proto::Session::Service {
 public:
  explicit OneChunk(grpc::StatusCode code) : code_(code) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }

  grpc::Status Fetch(grpc::ServerContext* call, const proto::FetchRequest*,
                     grpc::ServerWriter<proto::FetchChunk>* chunks) override {
    proto::FetchChunk chunk;
    chunk.set_data("bytes");
    chunk.set_crc32c(Crc32c(chunk.data()));
    chunks->Write(chunk);
    if (code_ != grpc::StatusCode::OK) return {code_, "RST_STREAM"};
    while (!call->IsCancelled()) std::this_thread::yield();
    return grpc::Status::OK;
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

 private:
  const grpc::StatusCode code_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("chief client: a stream that breaks is no bug of ours, and is tried again", "[session]") {
  for (const grpc::StatusCode code :
       {grpc::StatusCode::INTERNAL, grpc::StatusCode::UNKNOWN, grpc::StatusCode::CANCELLED}) {
    OneChunk chief(code);
    ChiefClient client({chief.address(), "", "token"});

    const absl::Status status = client.FetchJob({}).status();

    INFO(status.ToString());
    CHECK(absl::IsUnavailable(status));
  }
}

TEST_CASE("chief client: what the chief itself says about a fetch is passed on", "[session]") {
  OneChunk chief(grpc::StatusCode::NOT_FOUND);
  ChiefClient client({chief.address(), "", "token"});

  CHECK(absl::IsNotFound(client.FetchMetagraph({}, "none").status()));
  CHECK(client.bytes_fetched() == 5);
  CHECK(absl::IsUnavailable(ChiefClient({"", "/nowhere/address", "token"}).FetchJob({}).status()));
}

TEST_CASE("chief client: the fetch of a share ends with its group, and with the client", "[session]") {
  OneChunk chief(grpc::StatusCode::OK);
  ChiefClient client({chief.address(), "", "token"});
  const bool by_group = GENERATE(true, false);
  CallGroup group;

  const absl::Status status = client.FetchShare({}, {}, 0, 1, group, [&](uint64_t, absl::Span<const char>) {
    if (by_group) {
      group.Cancel();
    } else {
      client.Shutdown();
    }
  });

  CHECK(absl::IsCancelled(status));
  CHECK(absl::IsCancelled(client.FetchShare({}, {}, 0, 1, group, [](uint64_t, absl::Span<const char>) {})));
  CHECK(client.WaitForShutdown(absl::ZeroDuration()) == !by_group);
}

TEST_CASE("chief client: an address file that was removed says nothing of the chief", "[session]") {
  const char* base = std::getenv("TEST_TMPDIR");
  std::string directory = std::string(base != nullptr ? base : "/tmp") + "/chief-XXXXXX";
  REQUIRE(mkdtemp(directory.data()) != nullptr);
  const std::string file = directory + "/address";
  const ChiefClient client({"", file, "token"});
  CHECK(absl::IsNotFound(client.Address().status()));

  std::ofstream(file) << "10.0.0.1:7\n";
  CHECK(client.Address().value_or("none") == "10.0.0.1:7");
  std::filesystem::remove(file);
  CHECK(client.Address().value_or("none") == "10.0.0.1:7");
  std::ofstream(file) << "10.0.0.2:8\n";

  CHECK(client.Address().value_or("none") == "10.0.0.2:8");
}

}  // namespace
}  // namespace lockstep::worker
