#include "tests/e2e/traced_job.h"

#include <signal.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/checkpoint_reader.h"
#include "chief/term/job_log.h"
#include "common/storage/local/local_storage.h"

namespace lockstep::e2e {
namespace {

namespace fs = std::filesystem;

constexpr int kLastStep = 24;
constexpr size_t kKept = 2;

// A save every 8 steps; at the third one retention has something to remove.
const Words& TracedSets() {
  static const Words sets = [] {
    Words words = Settings(absl::StrCat(kLastStep, "steps"), "8steps");
    words.push_back(absl::StrCat("checkpoint.keep_latest=", kKept));
    return words;
  }();
  return sets;
}

std::string FreshDirectory() {
  static int count = 0;
  const std::string temporary = fs::canonical(std::getenv("TEST_TMPDIR")).string();
  return absl::StrCat(temporary, "/calls.", getpid(), ".", ++count);
}

std::vector<std::string> NamesIn(const std::string& path) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const auto& entry : fs::directory_iterator(path, missing)) names.push_back(entry.path().filename());
  return names;
}

}  // namespace

TracedJob::TracedJob(const std::string& original) : directory_(FreshDirectory()) {
  if (!original.empty()) fs::copy(original, directory_, fs::copy_options::recursive);
}

TracedJob::~TracedJob() {
  worker_.reset();
  chief_.reset();
  traced_.reset();
  std::error_code ignored;
  fs::remove_all(directory_, ignored);
  fs::remove(TracedLog(), ignored);
}

int64_t TracedJob::last_step() { return kLastStep; }

std::string TracedJob::Name(const std::string& process) const {
  return absl::StrCat(fs::path(directory_).filename().string(), ".", process);
}

void TracedJob::StartTraced(Hit hit) {
  Words words = {kLockstep};
  const Words rest = Command({"chief", kJob, "--dir", directory_, "--expected-workers", "1"}, TracedSets());
  words.insert(words.end(), rest.begin(), rest.end());
  traced_.emplace(std::move(words), TracedLog(), directory_, std::move(hit));
}

void TracedJob::StartChief() {
  chief_.emplace(Name(absl::StrCat("chief", ++started_)),
                 Words{"chief", kJob, "--dir", directory_, "--expected-workers", "1"}, TracedSets());
}

void TracedJob::StartWorker() {
  worker_.emplace(Name("worker"), Words{"worker", "--chief-file", directory_ + "/chief/address", "--token-file",
                                        directory_ + "/chief/token", "--name", "worker-0"});
}

Ended TracedJob::EndOfTraced() {
  const std::optional<Ended> ended = traced_->Wait(kLimit);
  if (!ended.has_value()) FAIL("the traced chief does not end:\n" << TracedOutput());
  return *ended;
}

bool TracedJob::WaitUntilHeld() {
  const std::optional<bool> held = traced_->WaitUntilHeld(kLimit);
  if (!held.has_value()) FAIL("the traced chief is neither held nor ends:\n" << TracedOutput());
  return *held;
}

void TracedJob::KillTracedOnceItListens() {
  WaitUntil("the traced chief listens", [this] { return absl::StrContains(TracedOutput(), "listening on"); });
  traced_->Signal(SIGKILL);
  CHECK(EndOfTraced() == Ended{0, SIGKILL});
}

void TracedJob::ForgetLock() const { fs::remove(directory_ + "/chief/lock"); }

Logged TracedJob::CheckLog() const {
  Logged logged;
  if (!fs::exists(directory_)) return logged;
  auto storage = LocalStorage::Open(directory_);
  REQUIRE(storage.ok());
  chief::JobLog log(**storage);
  const auto record = log.Read();
  INFO(record.status().message());
  REQUIRE(record.ok());
  CHECK(log.damage().empty());
  if (!record->has_value()) return logged;
  logged.term = (*record)->term();
  for (const LiveCheckpoint& live : (*record)->live()) {
    CAPTURE(live.prefix());
    const auto reader = chief::CheckpointReader::Open(**storage, live.prefix());
    INFO(reader.status().message());
    REQUIRE(reader.ok());
    CHECK(reader->VerifyContent().message() == "");
    CHECK(reader->manifest().state_digest() == live.state_digest());
    CHECK(reader->manifest().step() == live.step());
    logged.newest = std::max<int64_t>(logged.newest, live.step());
  }
  return logged;
}

Files TracedJob::ReadFiles() const {
  Files files;
  if (!fs::exists(directory_)) return files;  // whoever would make it is held at that call
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    if (entry.is_regular_file()) files[fs::relative(entry.path(), directory_).string()] = Read(entry.path().string());
  }
  return files;
}

void TracedJob::CheckDone() {
  CHECK(chief_->End() == Ended{});
  INFO(chief_->Output());
  if (worker_.has_value()) {
    const Ended ended = worker_->End();
    INFO(worker_->Output());
    CHECK(ended == Ended{});
  }
  CheckDirectory();
}

void TracedJob::CheckDirectory() const {
  CHECK(Digest(directory_) == Undisturbed().digest);
  const Result verified = Run({"checkpoint", "verify", directory_});
  INFO(verified.output);
  CHECK(verified.code == kExitDone);
  CHECK(CheckLog().newest == kLastStep);
  // Retention counts those that a chief has read through itself. Of one that was killed in its last save, the next one
  // finds the job done, and the oldest stays.
  const size_t kept = NamesIn(directory_ + "/checkpoints").size();
  CHECK(kept >= kKept);
  CHECK(kept <= kKept + 1);
  std::vector<std::string> set_aside = NamesIn(directory_ + "/set_aside");
  if (set_aside == std::vector<std::string>{may_be_set_aside_}) set_aside.clear();
  CHECK(set_aside == std::vector<std::string>());
}

const TracedJob::Reference& TracedJob::Undisturbed() {
  static const Reference reference = [] {
    TracedJob job;
    job.StartTraced({});
    job.StartWorker();
    const Ended ended = job.EndOfTraced();
    INFO(job.TracedOutput());
    REQUIRE(ended == Ended{});
    REQUIRE(job.worker_->End() == Ended{});
    return Reference{lockstep::e2e::Digest(job.directory()), job.traced().calls()};
  }();
  return reference;
}

Spread SpreadOr(Spread usual) {
  const char* wanted = std::getenv("LOCKSTEP_CALLS");
  if (wanted == nullptr) return usual;
  if (std::sscanf(wanted, "%d:%d", &usual.first, &usual.every) != 2 || usual.first < 1 || usual.every < 1) {
    FAIL("LOCKSTEP_CALLS is '" << wanted << "'; expected FIRST:EVERY, as 1:1 for all calls");
  }
  return usual;
}

Coverage::~Coverage() {
  std::cout << what_ << ": " << hits_ << " calls hit\n";
  if (std::getenv("LOCKSTEP_CALLS") == nullptr) return;
  std::set<std::string> all;
  for (const TracedCall& call : TracedJob::UndisturbedCalls()) all.insert(call.Kind());
  for (const std::string& kind : all) {
    if (!kinds_.contains(kind)) std::cout << "  not hit: " << kind << "\n";
  }
}

}  // namespace lockstep::e2e
