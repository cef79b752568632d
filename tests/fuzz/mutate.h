// Makes mutated copies of the files of a corpus.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_TESTS_FUZZ_MUTATE_H_
#define LOCKSTEP_TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/fuzz/dice.h"
#include "tests/fuzz/structured_mutator.h"

namespace lockstep::fuzz {

// Changes bits, bytes and numbers (to limits of their types); removes, duplicates, moves or cuts pieces, or copies them
// from a file of the corpus. REQUIRES: a non-empty corpus.
void ChangeBytes(Dice& dice, const std::vector<std::string>& corpus, std::string& bytes);

// A file of the corpus after one to eight changes: mostly by `structured`, if it is not null, otherwise of bytes. A
// function of its arguments. REQUIRES: a non-empty corpus.
std::string Mutant(const std::vector<std::string>& corpus, uint64_t seed, uint64_t run,
                   const StructuredMutator* structured = nullptr);

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_MUTATE_H_
