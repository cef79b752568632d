#include "common/net/chief_channel.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/net/beat_on.h"
#include "common/net/loopback_server.h"
#include "common/sync/mutex.h"
#include "protos/session.grpc.pb.h"

namespace lockstep {
namespace {

const std::string kToken(64, 'a');

// A chief of one call.
class ChiefOnPort final : public proto::Session::Service {
 public:
  explicit ChiefOnPort(const std::string& token) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", MakeChiefCredentials(token, [this] { ++refused; }).value(), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }
  ~ChiefOnPort() override { server_->Shutdown(std::chrono::system_clock::now()); }

  grpc::Status Beat(grpc::ServerContext* call, const proto::HeartbeatRequest*, proto::HeartbeatReply*) override {
    ++calls;
    showed_secret = call->client_metadata().contains("lockstep-secret");
    return CheckRole(*call, Role::kJoin);
  }

  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }

  std::atomic<int> refused{0};
  std::atomic<int> calls{0};
  std::atomic<bool> showed_secret{false};  // to the handler

 private:
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("chief channel: who has the token is served by its role", "[net]") {
  ChiefOnPort chief(kToken);
  const auto code = [&](const std::string& token, Role role) {
    const ChiefChannel channel = MakeChiefChannel(chief.address(), "test", CallerKeyOf(token, role).value());
    const grpc::Status status = BeatOn(channel.channel);
    CHECK_FALSE(*channel.stranger);
    return status.error_code();
  };

  CHECK(code(kToken, Role::kAdmin) == grpc::StatusCode::OK);
  CHECK(code(kToken, Role::kJoin) == grpc::StatusCode::OK);
  CHECK(code(kToken, Role::kRead) == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(code(RoleCredential(kToken, Role::kJoin).value(), Role::kJoin) == grpc::StatusCode::OK);
  CHECK(code(RoleCredential(kToken, Role::kRead).value(), Role::kAdmin) == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(chief.calls == 5);
  CHECK(chief.refused == 0);
}

TEST_CASE("chief channel: a call without the secret is refused before its message is read, and counted", "[net]") {
  ChiefOnPort chief(kToken);
  CallerKey key = CallerKeyOf(kToken, Role::kAdmin).value();
  key.secret = GENERATE(std::string(64, '0'), std::string("x"), kToken);
  const ChiefChannel channel = MakeChiefChannel(chief.address(), "test", key);

  const grpc::Status status = BeatOn(channel.channel);

  CHECK(status.error_code() == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(chief.refused == 1);
  CHECK(chief.calls == 0);
}

TEST_CASE("chief channel: who took the port of a chief, with a key of its own, gets no call", "[net]") {
  ChiefOnPort stranger("another token");
  const ChiefChannel channel = MakeChiefChannel(stranger.address(), "test", CallerKeyOf(kToken, Role::kAdmin).value());

  const grpc::Status status = BeatOn(channel.channel);

  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(*channel.stranger);
  CHECK(stranger.calls == 0);
  CHECK(stranger.refused == 0);
}

TEST_CASE("chief channel: a listener without TLS is told neither the token nor a secret", "[net]") {
  const CallerKey key = CallerKeyOf(kToken, Role::kAdmin).value();
  Mutex mutex;
  std::string heard;
  LoopbackServer listener([&](int socket) {
    char buffer[4096];
    for (ssize_t n = 1; n > 0;) {
      n = recv(socket, buffer, sizeof buffer, 0);
      MutexLock lock(&mutex);
      if (n > 0) heard.append(buffer, static_cast<size_t>(n));
      // What a server of HTTP/2 in the clear begins with.
      if (n > 0) SendAll(socket, absl::string_view("\0\0\0\x04\0\0\0\0\0", 9));
    }
  });

  const grpc::Status status =
      BeatOn(MakeChiefChannel(absl::StrCat("127.0.0.1:", listener.port()), "test", key).channel);

  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  MutexLock lock(&mutex);
  CHECK_FALSE(heard.empty());
  for (const std::string& secret : {kToken, key.secret, key.pin}) CHECK_FALSE(absl::StrContains(heard, secret));
}

TEST_CASE("chief channel: a caller without TLS is not served", "[net]") {
  ChiefOnPort chief(kToken);

  const grpc::Status status = BeatOn(grpc::CreateChannel(chief.address(), grpc::InsecureChannelCredentials()));

  CHECK(status.error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(chief.calls == 0);
}

// A folder whose name is short enough for sockets, with the name of an address file in it.
class ShortFolder {
 public:
  ShortFolder() { REQUIRE(mkdtemp(name_.data()) != nullptr); }
  ~ShortFolder() { std::filesystem::remove_all(name_); }
  std::string Socket() const {
    const std::string socket = SocketBeside(name_ + "/address");
    REQUIRE(socket == name_ + "/address.socket");
    return socket;
  }

 private:
  std::string name_ = "/tmp/lockstep-XXXXXX";
};

// A chief at a socket of the file system.
class ChiefWithSocket {
 public:
  ChiefWithSocket(const std::string& token, std::string socket) : socket_(std::move(socket)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + socket_, MakeSocketCredentials(token, [this] { ++refused; }));
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
  }
  void End() { server_->Shutdown(std::chrono::system_clock::now()); }
  const std::string& socket() const { return socket_; }

  std::atomic<int> refused{0};

 private:
  class Service final : public proto::Session::Service {
    grpc::Status Beat(grpc::ServerContext* call, const proto::HeartbeatRequest*, proto::HeartbeatReply*) override {
      return CheckRole(*call, Role::kJoin);
    }
  };
  const std::string socket_;
  Service service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("chief channel: a socket beside the address file serves by the same secrets", "[net]") {
  const ShortFolder folder;
  ChiefWithSocket chief(kToken, folder.Socket());
  const auto code = [&](CallerKey key) {
    key.socket = chief.socket();
    return BeatOn(MakeChiefChannel("127.0.0.1:1", "test", key).channel).error_code();  // nobody listens there
  };
  CallerKey wrong = CallerKeyOf(kToken, Role::kJoin).value();
  wrong.secret = std::string(64, '0');

  CHECK(code(CallerKeyOf(kToken, Role::kJoin).value()) == grpc::StatusCode::OK);
  CHECK(code(CallerKeyOf(kToken, Role::kRead).value()) == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(chief.refused == 0);
  CHECK(code(wrong) == grpc::StatusCode::UNAUTHENTICATED);
  CHECK(chief.refused == 1);
  chief.End();
}

TEST_CASE("chief channel: where nobody listens at the socket the address is taken, and TLS", "[net]") {
  ChiefOnPort chief(kToken);
  CallerKey key = CallerKeyOf(kToken, Role::kJoin).value();
  const ShortFolder folder;
  key.socket = folder.Socket();
  CHECK(BeatOn(MakeChiefChannel(chief.address(), "test", key).channel).ok());  // no such file

  const int left = socket(AF_UNIX, SOCK_STREAM, 0);  // of a chief that is gone
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  key.socket.copy(address.sun_path, sizeof address.sun_path - 1);
  REQUIRE(bind(left, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  CHECK(BeatOn(MakeChiefChannel(chief.address(), "test", key).channel).ok());

  // The kernel keeps the user who called listen(2). Another one's socket would hang whoever went by it.
  if (geteuid() == 0) {
    REQUIRE(syscall(SYS_setresuid, -1, 65534, -1) == 0);  // of this thread alone
    const bool listens = listen(left, 4) == 0;
    REQUIRE(syscall(SYS_setresuid, -1, 0, -1) == 0);
    REQUIRE(listens);
    CHECK(BeatOn(MakeChiefChannel(chief.address(), "test", key).channel).ok());
  }
  close(left);
}

TEST_CASE("chief channel: an address file with a long name has no socket", "[net]") {
  CHECK(SocketBeside("/tmp/" + std::string(120, 'a')).empty());
}

TEST_CASE("chief channel: the secret is not among the metadata that a handler sees", "[net]") {
  ChiefOnPort chief(kToken);
  REQUIRE(BeatOn(MakeChiefChannel(chief.address(), "test", CallerKeyOf(kToken, Role::kJoin).value()).channel).ok());
  CHECK(chief.calls == 1);
  CHECK_FALSE(chief.showed_secret);
}

}  // namespace
}  // namespace lockstep
