// Mutates inputs by their structure instead of by bytes: most messages with changed bytes fail to parse. A target whose
// inputs have a structure defines TargetMutator; our driver (driver.cc) and libFuzzer (libfuzzer_mutator.cc) then use
// it beside changes of bytes.
//
// Threading: immutable.
#ifndef LOCKSTEP_TESTS_FUZZ_STRUCTURED_MUTATOR_H_
#define LOCKSTEP_TESTS_FUZZ_STRUCTURED_MUTATOR_H_

#include <optional>
#include <string>

#include "tests/fuzz/dice.h"

namespace lockstep::fuzz {

class StructuredMutator {
 public:
  virtual ~StructuredMutator() = default;
  // `input` after one change; nullopt if it does not have the structure. A function of its arguments.
  virtual std::optional<std::string> Change(const std::string& input, Dice& dice) const = 0;
  // `input` with a part of `other`; nullopt if one of them does not have the structure, or they share no type of part.
  virtual std::optional<std::string> Cross(const std::string& input, const std::string& other, Dice& dice) const = 0;
};

// The mutator of the linked target. A weak symbol: its address is null if the target has none.
__attribute__((weak)) const StructuredMutator& TargetMutator();

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_STRUCTURED_MUTATOR_H_
