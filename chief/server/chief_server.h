// The chief's gRPC server and its two listeners: a network address, where only holders of a credential get through to
// gRPC (common/net/guarded_listener.h), and a socket in the file system for workers on the same machine.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_SERVER_CHIEF_SERVER_H_
#define LOCKSTEP_CHIEF_SERVER_CHIEF_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "chief/server/session_service.h"
#include "common/net/guarded_listener.h"

namespace lockstep::chief {

class ChiefServer {
 public:
  struct Options {
    std::string listen;   // HOST:PORT
    std::string earlier;  // the previous chief's address: its port is taken again if `listen` leaves the port open
    std::string socket;   // "": none
    std::string token;
    std::vector<grpc::Service*> services;  // outlive the server
    ServiceContext* context = nullptr;     // shared by the services; outlives the server, which sets its `proved`
  };

  // Starts to listen and serve. FailedPrecondition, with the remedy: the address cannot be bound. If the folder of
  // `socket` cannot hold sockets, the server listens at the address only.
  static absl::StatusOr<std::unique_ptr<ChiefServer>> Start(Options options);
  ~ChiefServer();
  ChiefServer(const ChiefServer&) = delete;
  ChiefServer& operator=(const ChiefServer&) = delete;

  // HOST:PORT, for workers.
  const std::string& address() const { return address_; }
  // Accepts no more calls, and ends those that still run after `limit`. Blocks.
  void Shutdown(absl::Duration limit);

 private:
  ChiefServer() = default;
  absl::Status Listen(const Options& options);
  absl::Status Serve(const Options& options, const std::string& socket);

  std::string address_;
  std::unique_ptr<GuardedListener> listener_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_SERVER_CHIEF_SERVER_H_
