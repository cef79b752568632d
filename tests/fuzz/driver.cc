// Runs a fuzz target where there is no libFuzzer: on every file of its corpus, then on changed copies of them, each a
// function of the seed and its number alone. The seed is another one each time, unless it is given. Says which run it
// was when the target crashes, or is stopped because it hangs.
//   TARGET_fuzz_test CORPUS_FOLDER [--runs N] [--seed S] [--first N]
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "common/status/exit_code.h"
#include "tests/fuzz/fuzz_file.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/structured_mutator.h"

namespace lockstep::fuzz {
namespace {

constexpr rlim_t kMostMemory = rlim_t{3} << 30;

char current[256] = "before the first input\n";

void OnCrash(int signal_number) {
  // What a handler may call: no allocation, no stream.
  static_cast<void>(!write(STDERR_FILENO, current, std::strlen(current)));
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

void RunOn(const std::string& input, const std::string& what) {
  std::snprintf(current, sizeof(current), "fuzz: it was %s\n", what.c_str());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
}

// An allocation that no input of this size justifies fails. Sanitizers reserve far more for themselves.
void LimitMemory() {
#if !defined(__SANITIZE_ADDRESS__) && !defined(LOCKSTEP_THREAD_SANITIZER)
  const rlimit limit = {kMostMemory, kMostMemory};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

std::vector<std::string> ReadCorpus(const std::string& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> corpus;
  for (const auto& path : paths) {
    std::ifstream in(path, std::ios::binary);
    corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    RunOn(corpus.back(), path.string());
  }
  return corpus;
}

int Main(int argc, char** argv) {
  uint64_t runs = 2000;
  uint64_t seed = std::random_device{}();
  uint64_t first = 0;
  for (int i = 2; i < argc; i += 2) {
    uint64_t* const value = std::strcmp(argv[i], "--runs") == 0    ? &runs
                            : std::strcmp(argv[i], "--seed") == 0  ? &seed
                            : std::strcmp(argv[i], "--first") == 0 ? &first
                                                                   : nullptr;
    if (value == nullptr || i + 1 == argc || !absl::SimpleAtoi(argv[i + 1], value)) argc = 0;
  }
  if (argc < 2) {
    std::fprintf(stderr, "usage: CORPUS_FOLDER [--runs N] [--seed S] [--first N]\n");
    return kExitUsage;
  }
  for (const int signal_number : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGTERM, SIGALRM})
    signal(signal_number, OnCrash);
  LimitMemory();
  std::printf("fuzz: seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  const std::vector<std::string> corpus = ReadCorpus(argv[1]);
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: %s is empty\n", argv[1]);
    return kExitUsage;
  }
  const StructuredMutator* const structured = TargetMutator != nullptr ? &TargetMutator() : nullptr;
  for (uint64_t run = first; run < first + runs; ++run) {
    RunOn(Mutant(corpus, seed, run, structured),
          absl::StrCat("run ", run, " of --seed ", seed, "; again: --first ", run, " --runs 1"));
  }
  std::printf("fuzz: %zu files of the corpus, %llu changed ones of seed %llu\n1 passed, 0 failed\n", corpus.size(),
              static_cast<unsigned long long>(runs), static_cast<unsigned long long>(seed));
  return kExitDone;
}

}  // namespace
}  // namespace lockstep::fuzz

int main(int argc, char** argv) { return lockstep::fuzz::Main(argc, argv); }
