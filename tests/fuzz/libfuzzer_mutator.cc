// Gives libFuzzer the structured mutator of the target. It changes bytes itself now and then, and where an input does
// not have the form.
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/structured_mutator.h"

// Of libFuzzer.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// What libFuzzer looks for.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed);
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other, size_t other_size,
                                            uint8_t* out, size_t max_size, unsigned int seed);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
  lockstep::fuzz::Dice dice(seed);
  if (dice.Once(16)) return LLVMFuzzerMutate(data, size, max_size);
  const auto changed = lockstep::fuzz::TargetMutator().Change(lockstep::fuzz::Text(data, size), dice);
  if (!changed.has_value() || changed->empty() || changed->size() > max_size) {
    return LLVMFuzzerMutate(data, size, max_size);
  }
  std::memcpy(data, changed->data(), changed->size());
  return changed->size();
}

// 0: libFuzzer takes another way.
extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* data, size_t size, const uint8_t* other, size_t other_size,
                                            uint8_t* out, size_t max_size, unsigned int seed) {
  lockstep::fuzz::Dice dice(seed);
  const auto crossed = lockstep::fuzz::TargetMutator().Cross(lockstep::fuzz::Text(data, size),
                                                             lockstep::fuzz::Text(other, other_size), dice);
  if (!crossed.has_value() || crossed->size() > max_size) return 0;
  std::memcpy(out, crossed->data(), crossed->size());
  return crossed->size();
}
