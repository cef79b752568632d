// The heartbeat of a worker. It is sent independently of the session, on a thread and a channel of its own.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_HEARTBEAT_H_
#define LOCKSTEP_COMMON_PROTOCOL_HEARTBEAT_H_

#include <cstdint>

#include "common/protocol/fields.h"
#include "common/protocol/ids.h"

namespace lockstep {

// What a worker is doing; the chief judges silence and lack of progress by it (rule 17).
struct Heartbeat {
  enum class Phase : uint8_t { kPreparing = 0, kForming, kComputing, kWaitingForPeer, kWaitingForChief, kIdle };
  Phase phase = Phase::kIdle;
  uint64_t progress = 0;  // nodes executed + bytes moved, never decreases
  Position position;      // for display only: no decision uses it (rule 8)
  LS_FIELDS(Heartbeat, phase, progress, position)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_HEARTBEAT_H_
