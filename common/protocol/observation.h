// What rank 0 tells of the state beside training: texts and what hooks look at.
//
// Threading: immutable.
#ifndef LOCKSTEP_COMMON_PROTOCOL_OBSERVATION_H_
#define LOCKSTEP_COMMON_PROTOCOL_OBSERVATION_H_

#include <cstdint>
#include <string>

#include "common/protocol/fields.h"
#include "common/protocol/ids.h"

namespace lockstep {

// What the model writes after the evaluation of `step`; from rank 0, and lost when that dies meanwhile.
struct TextSample {
  Lineage lineage;
  uint64_t step = 0;
  std::string text;  // bytes
  LS_FIELDS(TextSample, lineage, step, text)
};

// What a hook had looked at of the state after `step`, or of the steps up to it: an Observed of
// protos/observation.proto. From rank 0, and lost when that dies meanwhile.
struct Observation {
  Lineage lineage;
  uint64_t step = 0;
  std::string hook;
  std::string content;
  LS_FIELDS(Observation, lineage, step, hook, content)
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_PROTOCOL_OBSERVATION_H_
