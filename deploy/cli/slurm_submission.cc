#include "deploy/cli/slurm_submission.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace lockstep::cli {

std::vector<std::string> SbatchCommand(const SlurmSubmission& submission, const std::string& script) {
  std::vector<std::string> words = {"sbatch", "--parsable", absl::StrCat("--job-name=", submission.name)};
  if (submission.gpus_per_worker > 0) {
    words.push_back(absl::StrCat("--ntasks=", submission.workers));
    words.push_back(absl::StrCat("--gpus-per-task=", submission.gpus_per_worker));
  } else {
    words.push_back(absl::StrCat("--nodes=", submission.workers));
    words.push_back("--ntasks-per-node=1");
  }
  if (!submission.partition.empty()) words.push_back(absl::StrCat("--partition=", submission.partition));
  if (!submission.time.empty()) words.push_back(absl::StrCat("--time=", submission.time));
  words.insert(words.end(), submission.options.begin(), submission.options.end());
  words.insert(words.end(), {script, "--lockstep", submission.program});
  if (submission.job_path.empty()) {
    words.insert(words.end(), {"--join", submission.directory});
    return words;
  }
  words.insert(words.end(), {submission.job_path, "--dir", submission.directory});
  for (const std::string& set : submission.overrides) words.insert(words.end(), {"--set", set});
  return words;
}

std::string ShellLine(const std::vector<std::string>& words) {
  const auto plain = [](char c) {
    return absl::ascii_isalnum(c) || absl::string_view("-_=+./:,@%").find(c) != absl::string_view::npos;
  };
  return absl::StrJoin(words, " ", [&plain](std::string* out, const std::string& word) {
    const bool as_it_is = !word.empty() && std::all_of(word.begin(), word.end(), plain);
    absl::StrAppend(out, as_it_is ? word : absl::StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  });
}

absl::StatusOr<std::string> SubmittedJob(absl::string_view answer) {
  const absl::string_view line = absl::StripAsciiWhitespace(answer);
  const absl::string_view number = line.substr(0, line.find(';'));  // a cluster's name may follow
  if (number.empty() || !std::all_of(number.begin(), number.end(), absl::ascii_isdigit)) {
    return absl::InvalidArgumentError(absl::StrCat("sbatch answered '", line, "' in place of a job's number"));
  }
  return std::string(number);
}

}  // namespace lockstep::cli
