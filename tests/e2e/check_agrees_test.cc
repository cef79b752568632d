// Whatever `lockstep check` accepts takes a first step, and whatever it refuses is refused by a run in the same words:
// over a corpus of jobs with any one, and many pairs, of some hundred settings, good and bad. The run is the chief's
// set-up and directory and a worker's replica in this process; check_test.cc has real ones.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "chief/server/job_setup.h"
#include "chief/server/job_store.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "deploy/cli/check_job.h"
#include "tests/e2e/check_corpus.h"
#include "worker/collectives/loopback/loopback_communicator.h"
#include "worker/device/choice/evaluate_node.h"
#include "worker/session/inspect_data.h"
#include "worker/step/replica.h"

namespace lockstep::cli {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::Contains;
using e2e::CorpusPath;
using e2e::Sets;
using e2e::Setting;

// What a run of the job comes to: its set-up and its directory as a chief makes them, a worker's replica, a step, and a
// slice of an evaluation.
absl::Status FirstStep(const std::string& path, const Sets& sets, const std::string& directory, int& exit_code) {
  chief::ChiefOptions options;
  options.job_path = path;
  options.overrides = sets;
  options.directory = directory;
  options.inspect_data = worker::InspectData;
  options.evaluate_node = device::EvaluateNode;
  LS_ASSIGN_OR_RETURN(chief::JobSetup setup, chief::SetUpJob(options, exit_code));
  LS_ASSIGN_OR_RETURN(const std::unique_ptr<chief::JobStore> store, chief::JobStore::Open(setup, exit_code));
  LS_ASSIGN_OR_RETURN(const JobSpec job, ParseJob(store->job_yaml(), "/job.yaml"));
  worker::ReplicaProblem problem;
  const auto replica = worker::Replica::Make(setup.metagraph_bytes, job, "", nullptr, problem);
  exit_code = problem.problem == PrepareProblem::kData ? kExitBadData : kExitBadJob;
  if (replica == nullptr) return problem.status;
  LS_ASSIGN_OR_RETURN(const chief::InitialState initial, chief::InitialStateOf(setup, exit_code));
  LS_RETURN_IF_ERROR(replica->state().host().Load(initial.tensors));
  LS_RETURN_IF_ERROR(replica->state().Store());
  replica->runner().StateReplaced();
  exit_code = kExitBadData;
  const bool skips = job.train().on_nan() == job::Train::ON_NAN_SKIP_STEP;
  const auto communicators = worker::MakeLoopback({1, 1}, 1);
  for (int64_t step = 1; step <= 4; ++step) {  // an epoch: every sample
    LS_ASSIGN_OR_RETURN(const worker::StepResult result, replica->runner().RunStep(*communicators[0], step, {}));
    if (!result.applied && !skips) return absl::InvalidArgumentError(result.message);
  }
  if (!job.data().has_eval()) return absl::OkStatus();
  return replica->runner().RunSlice(*communicators[0], 4, 0, {}).status();
}

// What lies in a directory: the content of files by their paths.
std::map<std::string, std::string> Content(const std::string& directory) {
  std::map<std::string, std::string> content;
  if (!fs::exists(directory)) return content;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    std::ifstream in(entry.path(), std::ios::binary);
    content[entry.path().string()] = entry.is_directory() ? "" : std::string(std::istreambuf_iterator<char>(in), {});
  }
  return content;
}

// The directory that a start of the corpus's job left.
const std::string& StartedBefore() {
  static const std::string directory = [] {
    const std::string made = CorpusPath("started");
    int exit_code = kExitDone;
    const absl::Status ran = FirstStep(CorpusPath("job.yaml"), {}, made, exit_code);
    INFO(ran);
    REQUIRE(ran.ok());
    return made;
  }();
  return directory;
}

// Compares check's verdict on a job with the run's. Returns what check found.
Findings CheckAgrees(const Setting& setting) {
  static int count = 0;
  const std::string directory = CorpusPath(absl::StrCat("run-", ++count));
  if (setting.earlier) {
    fs::copy(StartedBefore(), directory, fs::copy_options::recursive);
    setting.earlier(directory);
  }
  const auto before = Content(directory);
  INFO(absl::StrJoin(setting.sets, " "));
  Findings findings;
  CheckJob({.path = CorpusPath("job.yaml"), .overrides = setting.sets, .directory = directory, .device = {}}, findings);
  CHECK(Content(directory) == before);
  CHECK(fs::exists(directory) == static_cast<bool>(setting.earlier));
  int exit_code = kExitDone;
  const absl::Status ran = FirstStep(CorpusPath("job.yaml"), setting.sets, directory, exit_code);
  INFO("check: " << findings.first_error() << "\nrun: " << ran);
  CHECK(ran.ok() == !findings.failed());
  if (findings.failed()) {
    CHECK(ran.message() == findings.first_error().message());
    CHECK(exit_code == findings.exit_code());
  }
  fs::remove_all(directory);
  return findings;
}

// No machine has a GPU here: what a corpus says of one must not depend on the machine.
void PrepareFiles() {
  SetLogStyle(LogLevel::error, LogFormat::text);
  setenv("LOCKSTEP_CUDA_LIBRARY", "/nowhere/liblockstep_cuda.so", 1);
}

TEST_CASE("check: any one setting of the corpus is judged by check as by a run", "[e2e]") {
  PrepareFiles();
  CHECK_FALSE(CheckAgrees({}).failed());
  for (const Setting& setting : e2e::CorpusSettings()) {
    INFO(absl::StrJoin(setting.sets, " "));
    const Findings findings = CheckAgrees(setting);
    CHECK(findings.failed() != setting.good);
    std::string said = std::string(findings.first_error().message());
    if (setting.good) {
      for (const Finding& finding : findings.all()) absl::StrAppend(&said, finding.what, ": ", finding.text, "\n");
    }
    CHECK_THAT(said, Contains(setting.says));
    if (!setting.never.empty()) CHECK_THAT(said, !Contains(setting.never));
  }
}

TEST_CASE("check: pairs of settings of the corpus are judged by check as by a run", "[e2e]") {
  PrepareFiles();
  constexpr int kPairs = 300;
  std::mt19937 random(11);
  int accepted = 0;
  for (int i = 0; i < kPairs; ++i) {
    // Every other pair is of good ones, so that half of the corpus is.
    const std::vector<Setting>& all = e2e::CorpusSettings();
    Setting pair;
    for (int picked = 0; picked < 2;) {
      const Setting& setting = all[random() % all.size()];
      if ((i % 2 == 0 && !setting.good) || (pair.earlier && setting.earlier)) continue;
      pair.sets.insert(pair.sets.end(), setting.sets.begin(), setting.sets.end());
      if (setting.earlier) pair.earlier = setting.earlier;
      ++picked;
    }
    accepted += CheckAgrees(pair).failed() ? 0 : 1;
  }
  CHECK(accepted > kPairs / 5);
  CHECK(accepted < kPairs * 4 / 5);
}

TEST_CASE("check: a file that the job file itself names and that is missing is given with its line", "[e2e]") {
  PrepareFiles();
  const std::string path = CorpusPath("missing.yaml");
  std::ifstream good(CorpusPath("job.yaml"));
  std::string yaml{std::istreambuf_iterator<char>(good), {}};
  yaml.replace(yaml.find("x.npy"), 5, "nowhere.npy");
  std::ofstream(path) << yaml;

  Findings findings;
  CheckJob({.path = path, .overrides = {}, .directory = CorpusPath("missing"), .device = {}}, findings);
  int exit_code = kExitDone;
  const absl::Status ran = FirstStep(path, {}, CorpusPath("missing"), exit_code);

  CHECK_THAT(std::string(findings.first_error().message()),
             Contains("missing.yaml:4:11: data.train.inputs: data file ") && Contains("nowhere.npy"));
  CHECK(ran.message() == findings.first_error().message());
  CHECK(exit_code == kExitBadData);
}

}  // namespace
}  // namespace lockstep::cli
