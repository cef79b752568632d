// Jobs to compare what `lockstep check` says with what a run does: settings of one small job, good and bad, the files
// that they read, and directories of earlier starts.
//
// Threading: immutable once made.
#ifndef LOCKSTEP_TESTS_E2E_CHECK_CORPUS_H_
#define LOCKSTEP_TESTS_E2E_CHECK_CORPUS_H_

#include <functional>
#include <string>
#include <vector>

namespace lockstep::e2e {

using Sets = std::vector<std::string>;

struct Setting {
  Sets sets;
  bool good = false;
  std::string says = "";   // text that check must print
  std::string never = "";  // text that check must not print
  // Changes the directory of an earlier start of the job; empty: the job has no directory yet.
  std::function<void(const std::string& directory)> earlier = {};
};

// The path of a file that the jobs read. They are made once, below TEST_TMPDIR: 32 samples of 12 numbers in 4 classes,
// and damaged variants. The small job is job.yaml.
std::string CorpusPath(const std::string& name);

const std::vector<Setting>& CorpusSettings();

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_CHECK_CORPUS_H_
