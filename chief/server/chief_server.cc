#include "chief/server/chief_server.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/net/chief_channel.h"
#include "common/net/listen.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {
namespace {

// Of a caller whom the listener let in: several round trips of a second each.
constexpr int kHandshakeLimitMs = 5000;
// Each of a worker's connections has one purpose, and one or two calls at a time.
constexpr int kMostCallsOfAConnection = 16;
// A worker whose connection without a call was closed opens it again for its next one.
constexpr int kIdleLimitMs = 10 * 60 * 1000;
// Connections of strangers: as many, or a quarter of the descriptors where there are few.
constexpr size_t kMostGuests = 1024;

size_t MostGuests() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMostGuests;
  return std::clamp<size_t>(limit.rlim_cur / 4, 1, kMostGuests);
}

// Those to try, in order.
std::vector<HostPort> ListenPlaces(const HostPort& wanted, const std::string& earlier) {
  std::vector<HostPort> places = {wanted};
  const absl::StatusOr<HostPort> before = ParseHostPort(earlier);
  if (wanted.port == 0 && before.ok() && before->host == wanted.host) places.insert(places.begin(), *before);
  return places;
}

void SetLimits(grpc::ServerBuilder& builder) {
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 1000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeLimitMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kMostCallsOfAConnection);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleLimitMs);
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChiefServer>> ChiefServer::Start(Options options) {
  std::unique_ptr<ChiefServer> server(new ChiefServer);
  LS_RETURN_IF_ERROR(server->Listen(options));
  options.context->proved = [listener = server->listener_.get()](const std::string& peer) { listener->Proved(peer); };
  absl::Status serves = server->Serve(options, options.socket);
  if (!serves.ok() && !options.socket.empty()) {
    serves = server->Serve(options, "");  // not every file system has sockets
  }
  LS_RETURN_IF_ERROR(serves);
  server->listener_->Start([acceptor = server->acceptor_.get()](int listener, Descriptor connection) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters given;
    given.listener_fd = listener;
    given.fd = connection.Release();
    acceptor->HandleNewConnection(&given);
  });
  return server;
}

absl::Status ChiefServer::Listen(const Options& options) {
  LS_ASSIGN_OR_RETURN(const HostPort wanted, ParseHostPort(options.listen));
  GuardedListener::Options guarded;
  guarded.token = options.token;
  guarded.most_guests = MostGuests();
  guarded.refused = [&access = options.context->access](const std::string& peer, absl::string_view why) {
    access.Refused(peer, why);
  };
  absl::Status failed;
  for (HostPort place : ListenPlaces(wanted, options.earlier)) {
    absl::StatusOr<std::unique_ptr<GuardedListener>> listener = GuardedListener::Listen(place, guarded);
    failed = listener.status();
    if (!listener.ok()) continue;
    listener_ = *std::move(listener);
    place.port = listener_->port();
    address_ = place.ToString();
    return absl::OkStatus();
  }
  return failed;
}

absl::Status ChiefServer::Serve(const Options& options, const std::string& socket) {
  const auto refused = [&access = options.context->access] {
    access.Refused("a caller", "its call carries no secret of the job");
  };
  LS_ASSIGN_OR_RETURN(const auto credentials, MakeChiefCredentials(options.token, refused));
  grpc::ServerBuilder builder;
  SetLimits(builder);
  acceptor_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD, credentials);
  if (!socket.empty()) {
    builder.AddListeningPort(absl::StrCat("unix:", socket), MakeSocketCredentials(options.token, refused));
  }
  for (grpc::Service* const service : options.services) builder.RegisterService(service);
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) return absl::InternalError("gRPC does not start a server");
  return absl::OkStatus();
}

ChiefServer::~ChiefServer() { Shutdown(absl::ZeroDuration()); }

void ChiefServer::Shutdown(absl::Duration limit) {
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now() + absl::ToChronoMilliseconds(limit));
  listener_.reset();  // what it admits meanwhile gRPC closes
}

}  // namespace lockstep::chief
