// Jobs for comparing what `lockstep check` says with what a run does: settings over one small job, good and bad, the
// files that they read, and directories of earlier starts.
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
  std::string says = "";   // what check has to say
  std::string never = "";  // what it must not say
  // What is done to the directory of an earlier start of the job; empty: the job has no directory yet.
  std::function<void(const std::string& directory)> earlier = {};
};

// The files that the jobs read, made once in a folder below TEST_TMPDIR: 32 samples of 12 numbers in 4 classes, and
// what can be wrong with them. The small job is job.yaml.
std::string CorpusPath(const std::string& name);

const std::vector<Setting>& CorpusSettings();

}  // namespace lockstep::e2e

#endif  // LOCKSTEP_TESTS_E2E_CHECK_CORPUS_H_
