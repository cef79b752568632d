#include "tests/fuzz/mutate.h"

#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace lockstep::fuzz {
namespace {

TEST_CASE("fuzz: a changed copy is a function of seed and run, and they differ", "[fuzz]") {
  const std::vector<std::string> corpus = {"one file of some bytes", "another", ""};
  std::set<std::string> seen;
  for (uint64_t run = 0; run < 1000; ++run) {
    const std::string mutant = Mutant(corpus, 7, run);
    CHECK(mutant == Mutant(corpus, 7, run));
    seen.insert(mutant);
  }
  CHECK(seen.size() > 800);
  CHECK_FALSE(Mutant(corpus, 7, 0) == Mutant(corpus, 8, 0));
}

}  // namespace
}  // namespace lockstep::fuzz
