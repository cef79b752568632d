// Assembles traces of workers from the pieces in which they arrive.
//
// Invariants
//   * Memory is bounded, whatever workers send.
// Threading: thread-compatible.
#ifndef LOCKSTEP_CHIEF_HOOKS_TRACE_KEEPER_H_
#define LOCKSTEP_CHIEF_HOOKS_TRACE_KEEPER_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "protos/observation.pb.h"

namespace lockstep::chief {

struct WholeTrace {
  std::string file;  // "slow-step-200.worker-0.trace.json.gz"
  std::string bytes;
  std::string about;  // for people
};

class TraceKeeper {
 public:
  static constexpr size_t kMostBytes = size_t{32} << 20;  // of one trace
  static constexpr size_t kMostUnfinished = 16;

  // Adds a piece; returns the trace if this piece completes it. A trace whose pieces arrive out of order is dropped.
  std::optional<WholeTrace> Take(const std::string& hook, int64_t step, const TracePiece& piece);

 private:
  struct Part {
    std::string file;
    uint32_t pieces = 0;
    std::string bytes;
  };

  std::deque<Part> parts_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_HOOKS_TRACE_KEEPER_H_
