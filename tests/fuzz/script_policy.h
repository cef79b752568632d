// Reads the training policy in the script of a fuzz target.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_FUZZ_SCRIPT_POLICY_H_
#define LOCKSTEP_TESTS_FUZZ_SCRIPT_POLICY_H_

#include <optional>
#include <variant>

#include "common/protocol/wire.h"

namespace lockstep::fuzz {

// The policy as a worker reads it from a Welcome; nullopt if it is invalid.
inline std::optional<TrainingPolicy> ReadPolicy(const proto::TrainingPolicy& message) {
  proto::ChiefEnvelope envelope;
  *envelope.mutable_command()->mutable_welcome()->mutable_policy() = message;
  const auto read = FromWire(envelope);
  if (!read.ok()) return std::nullopt;
  return std::get<Welcome>(read->command).policy;
}

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_SCRIPT_POLICY_H_
