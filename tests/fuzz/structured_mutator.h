// Changes inputs as what they mean, not as bytes: most changed bytes of a message are refused where it is parsed. A
// target whose inputs have such a form defines TargetMutator; our driver (driver.cc) and libFuzzer
// (libfuzzer_mutator.cc) then use it beside changes of bytes.
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
  // `input` after one change. None: it does not have the form. A function of its arguments.
  virtual std::optional<std::string> Change(const std::string& input, Dice& dice) const = 0;
  // `input` with a part of `other`. None: one of them does not have the form, or they have no part in common.
  virtual std::optional<std::string> Cross(const std::string& input, const std::string& other, Dice& dice) const = 0;
};

// Of the target that is linked. Weak: null where the target has none.
__attribute__((weak)) const StructuredMutator& TargetMutator();

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_STRUCTURED_MUTATOR_H_
