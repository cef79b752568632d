// The chief's gRPC server and where it listens: at an address, where a listener lets only holders of a credential reach
// gRPC (common/net/guarded_listener.h), and at a socket of the file system for workers of its machine.
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
    std::string earlier;  // where the chief before listened: its port is taken again where `listen` leaves it open
    std::string socket;   // "": none
    std::string token;
    std::vector<grpc::Service*> services;  // outlive the server
    ServiceContext* context = nullptr;     // of the services; outlives the server, which sets its `proved`
  };

  // Listens and serves. FailedPrecondition, with the remedy: the address cannot be had. Where the folder of `socket`
  // cannot have sockets, only the address is listened at.
  static absl::StatusOr<std::unique_ptr<ChiefServer>> Start(Options options);
  ~ChiefServer();
  ChiefServer(const ChiefServer&) = delete;
  ChiefServer& operator=(const ChiefServer&) = delete;

  // HOST:PORT, for workers.
  const std::string& address() const { return address_; }
  // Ends what calls there are after `limit`, and takes no more.
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
