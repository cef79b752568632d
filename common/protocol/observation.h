// Messages by which rank 0 reports on the state besides training: generated texts, and the values that hooks observe.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_OBSERVATION_H_
#define LOCKSTEP_COMMON_PROTOCOL_OBSERVATION_H_

#include <cstdint>
#include <string>

#include "common/protocol/fields.h"
#include "common/protocol/ids.h"

namespace lockstep {

// Text that the model generates after the evaluation of `step`. Sent by rank 0, and lost if that dies before.
struct TextSample {
  Lineage lineage;
  uint64_t step = 0;
  std::string text;  // bytes
  LS_FIELDS(TextSample, lineage, step, text)
};

// The values that a hook observes of the state after `step`, or of the steps up to it. Sent by rank 0, and lost if that
// dies before.
struct Observation {
  Lineage lineage;
  uint64_t step = 0;
  std::string hook;
  std::string content;  // a serialised Observed of protos/observation.proto
  LS_FIELDS(Observation, lineage, step, hook, content)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_OBSERVATION_H_
