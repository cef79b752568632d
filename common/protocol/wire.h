// Converts between the plain structs of the protocol and protos/session.proto by field name; wire_test fails when one
// side lacks a field. It validates only form: an envelope without a message or with an unknown enum value is refused,
// and the cores judge its content.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_WIRE_H_
#define LOCKSTEP_COMMON_PROTOCOL_WIRE_H_

#include "absl/status/statusor.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"
#include "protos/session.pb.h"

namespace lockstep {

proto::WorkerEnvelope ToWire(const WorkerFence& fence, const WorkerMessage& message);
proto::ChiefEnvelope ToWire(const ChiefFence& fence, const ChiefCommand& command);
proto::HeartbeatRequest ToWire(const WorkerFence& fence, const Heartbeat& heartbeat);
proto::WorkerFence ToWire(const WorkerFence& fence);
proto::SnapshotId ToWire(const SnapshotId& snapshot);

struct FencedMessage {
  WorkerFence fence;
  WorkerMessage message;
};
struct FencedCommand {
  ChiefFence fence;
  ChiefCommand command;
};
struct FencedHeartbeat {
  WorkerFence fence;
  Heartbeat heartbeat;
};

// InvalidArgument, naming the field, for a malformed envelope.
absl::StatusOr<FencedMessage> FromWire(const proto::WorkerEnvelope& envelope);
absl::StatusOr<FencedCommand> FromWire(const proto::ChiefEnvelope& envelope);
absl::StatusOr<FencedHeartbeat> FromWire(const proto::HeartbeatRequest& request);
absl::StatusOr<WorkerFence> FromWire(const proto::WorkerFence& fence);
absl::StatusOr<SnapshotId> FromWire(const proto::SnapshotId& snapshot);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_WIRE_H_
