#include "common/net/guarded_listener.h"

#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/resource.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/net/beat_on.h"
#include "common/net/chief_channel.h"
#include "common/net/sample_hello.h"
#include "common/sync/mutex.h"
#include "protos/session.grpc.pb.h"

namespace lockstep {
namespace {

const std::string kGuardedToken(64, 'a');

Descriptor ConnectTo(int port) {
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  Descriptor made(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  REQUIRE(connect(made.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  return made;
}

void Say(const Descriptor& to, absl::string_view words) {
  REQUIRE(send(to.get(), words.data(), words.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(words.size()));
}

// Blocks until the other end has closed.
void AwaitEnd(const Descriptor& from) {
  char bytes[4096];
  while (recv(from.get(), bytes, sizeof bytes, 0) > 0) {
  }
}

bool IsOpen(const Descriptor& connection) {
  pollfd entry = {.fd = connection.get(), .events = POLLIN, .revents = 0};
  return poll(&entry, 1, 0) == 0;
}

// A caller by OpenSSL, which asks for `name` ("": none).
class TlsCaller {
 public:
  TlsCaller(int port, const std::string& name)
      : socket_(ConnectTo(port)),
        context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free),
        ssl_(SSL_new(context_.get()), SSL_free) {
    if (!name.empty()) REQUIRE(SSL_set_tlsext_host_name(ssl_.get(), name.c_str()) == 1);
  }
  bool Handshake() { return SSL_set_fd(ssl_.get(), socket_.get()) == 1 && SSL_connect(ssl_.get()) == 1; }
  std::string CertificateOfPeer() {
    const std::unique_ptr<X509, void (*)(X509*)> certificate(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    const std::unique_ptr<BIO, int (*)(BIO*)> text(BIO_new(BIO_s_mem()), BIO_free);
    REQUIRE(PEM_write_bio_X509(text.get(), certificate.get()) == 1);
    char* bytes = nullptr;
    const long size = BIO_get_mem_data(text.get(), &bytes);
    return std::string(bytes, static_cast<size_t>(size));
  }
  const Descriptor& socket() const { return socket_; }

 private:
  const Descriptor socket_;
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context_;
  const std::unique_ptr<SSL, void (*)(SSL*)> ssl_;
};

// A listener that keeps what it admits, and counts whom it shows out by the reason.
class Door {
 public:
  explicit Door(size_t most_guests = 1024) {
    GuardedListener::Options options;
    options.token = kGuardedToken;
    options.most_guests = most_guests;
    options.refused = [this](const std::string& peer, absl::string_view why) {
      MutexLock lock(&mutex_);
      peers_are_named_ = peers_are_named_ && absl::StartsWith(peer, "127.0.0.1:");
      ++refused_[std::string(why)];
      changed_.SignalAll();
    };
    listener_ = GuardedListener::Listen({.host = "127.0.0.1", .port = 0}, std::move(options)).value();
  }
  ~Door() {
    listener_.reset();
    MutexLock lock(&mutex_);
    CHECK(peers_are_named_);
  }
  void Start() {
    listener_->Start([this](int, Descriptor connection) {
      MutexLock lock(&mutex_);
      admitted_.push_back(std::move(connection));
      changed_.SignalAll();
    });
  }
  int port() const { return listener_->port(); }
  int AwaitRefused(const std::string& why, int count) {
    MutexLock lock(&mutex_);
    while (refused_[why] < count) changed_.Wait(&mutex_);
    return refused_[why];
  }
  int refused() {
    MutexLock lock(&mutex_);
    int sum = 0;
    for (const auto& [why, count] : refused_) sum += count;
    return sum;
  }
  void AwaitAdmitted(size_t count) {
    MutexLock lock(&mutex_);
    while (admitted_.size() < count) changed_.Wait(&mutex_);
  }
  size_t admitted() {
    MutexLock lock(&mutex_);
    return admitted_.size();
  }
  std::string ReadAdmitted(size_t which) {
    MutexLock lock(&mutex_);
    char bytes[4096];
    const ssize_t size = recv(admitted_[which].get(), bytes, sizeof bytes, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(bytes, static_cast<size_t>(size));
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::map<std::string, int> refused_ GUARDED_BY(mutex_);
  bool peers_are_named_ GUARDED_BY(mutex_) = true;
  std::vector<Descriptor> admitted_ GUARDED_BY(mutex_);
  std::unique_ptr<GuardedListener> listener_;
};

std::string NameOfHolder(Role role) { return ServerNameOf(CallerKeyOf(kGuardedToken, role).value().secret); }

TEST_CASE("guarded listener: a holder of any credential is admitted with all that it said, however it came", "[net]") {
  Door door;
  door.Start();
  size_t count = 0;
  for (const Role role : {Role::kRead, Role::kJoin, Role::kAdmin}) {
    const Descriptor caller = ConnectTo(door.port());
    const std::string hello = SampleHello(NameOfHolder(role));

    for (const char byte : hello) Say(caller, absl::string_view(&byte, 1));
    door.AwaitAdmitted(++count);

    CHECK(door.ReadAdmitted(count - 1) == hello);
    CHECK(IsOpen(caller));
  }
  CHECK(door.refused() == 0);
}

TEST_CASE("guarded listener: who asks for another name sees the chief's certificate, and is let in nowhere", "[net]") {
  Door door;
  door.Start();
  int count = 0;
  for (const std::string& name :
       {std::string(), std::string("chief.lockstep"), ServerNameOf(std::string(64, 'b')),
        NameOfHolder(Role::kJoin) + "x", NameOfHolder(Role::kJoin).substr(1), ServerNames("other").front()}) {
    INFO(name);
    TlsCaller caller(door.port(), name);

    REQUIRE(caller.Handshake());
    AwaitEnd(caller.socket());

    CHECK(PinOf(caller.CertificateOfPeer()) == CallerKeyOf(kGuardedToken, Role::kRead).value().pin);
    ++count;
    CHECK(door.AwaitRefused("it has no credential of this job", count) == count);
  }
  CHECK(door.admitted() == 0);
}

TEST_CASE("guarded listener: what is not TLS is shown out at once, and a connection that says nothing is not counted",
          "[net]") {
  Door door;
  door.Start();
  { const Descriptor monitor = ConnectTo(door.port()); }

  int count = 0;
  for (const std::string& words :
       {std::string("GET / HTTP/1.1\r\n\r\n"), std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), std::string(100, '\0'),
        std::string("\x16\x03\x01\xff\xff", 5)}) {
    const Descriptor stranger = ConnectTo(door.port());
    Say(stranger, words);
    AwaitEnd(stranger);
    ++count;
    CHECK(door.AwaitRefused("it does not begin with TLS", count) == count);
  }
  CHECK(door.refused() == count);
  CHECK(door.admitted() == 0);
}

TEST_CASE("guarded listener: of too many silent connections the oldest go, and holders are still admitted", "[net]") {
  Door door(/*most_guests=*/8);
  door.Start();
  std::vector<Descriptor> silent;
  for (int i = 0; i < 20; ++i) {
    silent.push_back(ConnectTo(door.port()));
    if (i % 2 == 1) Say(silent.back(), "\x16\x03\x01");
  }
  CHECK(door.AwaitRefused("too many came at once", 12) == 12);
  for (int i = 0; i < 12; ++i) AwaitEnd(silent[static_cast<size_t>(i)]);
  for (size_t i = 12; i < silent.size(); ++i) CHECK(IsOpen(silent[i]));

  const Descriptor holder = ConnectTo(door.port());
  Say(holder, SampleHello(NameOfHolder(Role::kJoin)));
  door.AwaitAdmitted(1);

  CHECK(door.AwaitRefused("too many came at once", 13) == 13);
}

TEST_CASE("guarded listener: of strangers who stop in their handshake sixteen are held", "[net]") {
  Door door;
  door.Start();
  std::vector<Descriptor> strangers;
  for (int i = 0; i < 17; ++i) {
    strangers.push_back(ConnectTo(door.port()));
    Say(strangers.back(), SampleHello(""));
    door.AwaitRefused("it has no credential of this job", i + 1);
  }

  AwaitEnd(strangers.back());
  char byte = 0;
  for (int i = 0; i < 16; ++i) {
    CHECK(recv(strangers[static_cast<size_t>(i)].get(), &byte, 1, 0) == 1);  // its ServerHello
  }
  strangers.erase(strangers.begin(), strangers.begin() + 4);
  TlsCaller next(door.port(), "");
  CHECK(next.Handshake());
}

TEST_CASE("guarded listener: where descriptors run out strangers go, and a holder that waited is admitted", "[net]") {
  Door door;
  std::vector<Descriptor> silent;
  for (int i = 0; i < 40; ++i) silent.push_back(ConnectTo(door.port()));  // they wait to be accepted
  const Descriptor holder = ConnectTo(door.port());
  Say(holder, SampleHello(NameOfHolder(Role::kJoin)));
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  const Descriptor highest(dup(0));
  const rlimit tight{static_cast<rlim_t>(highest.get()) + 1 + 10, before.rlim_max};  // 3 are the listener's own
  REQUIRE(setrlimit(RLIMIT_NOFILE, &tight) == 0);

  door.Start();
  door.AwaitAdmitted(1);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);

  CHECK(door.AwaitRefused("there are no descriptors left", 30) >= 30);
  const Descriptor later = ConnectTo(door.port());
  Say(later, SampleHello(NameOfHolder(Role::kRead)));
  door.AwaitAdmitted(2);
}

TEST_CASE("guarded listener: a port in use, and a host of another machine, cannot be listened at", "[net]") {
  const Door door;
  GuardedListener::Options options;
  options.token = kGuardedToken;
  for (const HostPort& place : {HostPort{.host = "127.0.0.1", .port = door.port()}, HostPort{.host = "192.0.2.1"}}) {
    const absl::Status refused = GuardedListener::Listen(place, options).status();
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Contains("--listen"));
  }
}

// A gRPC server behind a listener.
class GuardedChief final : public proto::Session::Service {
 public:
  GuardedChief() {
    GuardedListener::Options options;
    options.token = kGuardedToken;
    options.refused = [this](const std::string&, absl::string_view) { ++refused; };
    listener_ = GuardedListener::Listen({.host = "127.0.0.1", .port = 0}, std::move(options)).value();
    grpc::ServerBuilder builder;
    acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        MakeChiefCredentials(kGuardedToken, [] {}).value());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
    REQUIRE(server_ != nullptr);
    listener_->Start([this](int listener, Descriptor connection) {
      ++admitted;
      grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters given;
      given.listener_fd = listener;
      given.fd = connection.Release();
      acceptor_->HandleNewConnection(&given);
    });
  }
  ~GuardedChief() override {
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now());
  }
  grpc::Status Beat(grpc::ServerContext* call, const proto::HeartbeatRequest*, proto::HeartbeatReply*) override {
    peer = call->peer();
    return CheckRole(*call, Role::kJoin);
  }
  std::string address() const { return absl::StrCat("127.0.0.1:", listener_->port()); }

  std::atomic<int> refused{0};
  std::atomic<int> admitted{0};
  std::string peer;  // of the last call

 private:
  std::unique_ptr<GuardedListener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_CASE("guarded listener: gRPC serves holders behind it, and a caller with another token learns why not", "[net]") {
  GuardedChief chief;
  const ChiefChannel own = MakeChiefChannel(chief.address(), "test", CallerKeyOf(kGuardedToken, Role::kJoin).value());
  CHECK(BeatOn(own.channel).ok());
  CHECK_FALSE(*own.stranger);
  CHECK(absl::StartsWith(chief.peer, "ipv4:127.0.0.1:"));
  CHECK(chief.admitted == 1);

  const ChiefChannel other = MakeChiefChannel(chief.address(), "test", CallerKeyOf("other", Role::kJoin).value());
  CHECK(BeatOn(other.channel).error_code() == grpc::StatusCode::UNAVAILABLE);
  CHECK(*other.stranger);
  CHECK(BeatOn(grpc::CreateChannel(chief.address(), grpc::InsecureChannelCredentials())).error_code() ==
        grpc::StatusCode::UNAVAILABLE);
  CHECK(chief.admitted == 1);
  CHECK(chief.refused >= 2);
}

}  // namespace
}  // namespace lockstep
