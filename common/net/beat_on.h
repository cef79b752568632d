// Makes the smallest call of a chief, a heartbeat, for tests of the connection to it.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_BEAT_ON_H_
#define LOCKSTEP_COMMON_NET_BEAT_ON_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>

#include "protos/session.grpc.pb.h"

namespace lockstep {

// Blocks for 20 s at most.
inline grpc::Status BeatOn(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext call;
  call.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
  proto::HeartbeatReply reply;
  return proto::Session::NewStub(channel)->Beat(&call, {}, &reply);
}

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_BEAT_ON_H_
