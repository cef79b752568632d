// Changed copies of the files of a corpus.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_TESTS_FUZZ_MUTATE_H_
#define LOCKSTEP_TESTS_FUZZ_MUTATE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace lockstep::fuzz {

// A file of the corpus after one to eight changes: bits, bytes and numbers at the edges of their types, pieces left
// out, doubled, moved or taken from another file, a cut. A function of its arguments. REQUIRES: a corpus.
std::string Mutant(const std::vector<std::string>& corpus, uint64_t seed, uint64_t run);

}  // namespace lockstep::fuzz

#endif  // LOCKSTEP_TESTS_FUZZ_MUTATE_H_
