#include "worker/session/chief_client.h"

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/str_cat.h"
#include "common/digest/crc32c.h"
#include "common/log/log.h"
#include "common/net/chief_channel.h"

namespace lockstep::worker {
namespace {

// A chief that sends one chunk, then waits for the end of the call, or ends it with the status that the test wants.
class OneChunk final : public proto::Session::Service {
 public:
  explicit OneChunk(grpc::StatusCode code) : code_(code) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", MakeChiefCredentials("token", [] {}).value(), &port_);
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
    ChiefClient client({chief.address(), "", CallerKeyOf("token", Role::kJoin).value()});

    const absl::Status status = client.FetchJob({}).status();

    INFO(status.ToString());
    CHECK(absl::IsUnavailable(status));
  }
}

TEST_CASE("chief client: what the chief itself says about a fetch is passed on", "[session]") {
  OneChunk chief(grpc::StatusCode::NOT_FOUND);
  ChiefClient client({chief.address(), "", CallerKeyOf("token", Role::kJoin).value()});

  CHECK(absl::IsNotFound(client.FetchMetagraph({}, "none").status()));
  CHECK(client.bytes_fetched() == 5);
  CHECK(absl::IsUnavailable(
      ChiefClient({"", "/nowhere/address", CallerKeyOf("token", Role::kJoin).value()}).FetchJob({}).status()));
}

TEST_CASE("chief client: the fetch of a share ends with its group, and with the client", "[session]") {
  OneChunk chief(grpc::StatusCode::OK);
  ChiefClient client({chief.address(), "", CallerKeyOf("token", Role::kJoin).value()});
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

// An address file of the test's own.
class AddressFile {
 public:
  ~AddressFile() { Remove(); }
  const std::string& path() const { return path_; }
  void Say(const std::string& content) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content << std::flush;
  }
  void Remove() const { std::filesystem::remove(path_); }

 private:
  const std::string path_ = absl::StrCat(std::getenv("TEST_TMPDIR"), "/address.", getpid());
};

TEST_CASE("chief client: an address file that gives no address leaves the last one, and a new one is taken",
          "[session]") {
  const AddressFile file;
  const ChiefClient client({"", file.path(), CallerKeyOf("token", Role::kJoin).value()});
  CHECK(absl::IsNotFound(client.Address().status()));
  file.Say("127.0.0.1:1\n");
  CHECK(client.Address().value_or("none") == "127.0.0.1:1");

  file.Remove();
  CHECK(client.Address().value_or("none") == "127.0.0.1:1");
  file.Say("");
  CHECK(client.Address().value_or("none") == "127.0.0.1:1");
  file.Say("127.0.0.1:2\nand something else\n");
  CHECK(client.Address().value_or("none") == "127.0.0.1:1");

  file.Say("127.0.0.1:2\n");
  CHECK(client.Address().value_or("none") == "127.0.0.1:2");
  file.Remove();
  CHECK(client.Address().value_or("none") == "127.0.0.1:2");
}

// What `speak` writes to the log.
template <typename F>
std::string Logged(F speak) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  FlushLog();  // what others wrote before
  const int saved = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  speak();
  FlushLog();
  dup2(saved, STDERR_FILENO);
  close(saved);
  close(ends[1]);
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  close(ends[0]);
  return text;
}

TEST_CASE("chief client: the log hears once that an address file gives no address any more", "[session]") {
  const AddressFile file;
  const ChiefClient client({"", file.path(), CallerKeyOf("token", Role::kJoin).value()});

  const std::string text = Logged([&] {
    for (int outage = 0; outage < 3; ++outage) {
      file.Say("127.0.0.1:1\n");
      client.Address().IgnoreError();
      file.Remove();
      for (int attempt = 0; attempt < 3; ++attempt) client.Address().IgnoreError();
    }
  });

  INFO(text);
  CHECK_THAT(text, Catch::Contains(file.path()) && Catch::Contains("127.0.0.1:1"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
}

}  // namespace
}  // namespace lockstep::worker
