// A job's directory over several lives of its chief, with damage in between: JobStore on a real file system.
#include "chief/server/job_store.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/checkpoint/older_directory.h"
#include "chief/events/event_record.h"
#include "chief/server/job_store_harness.h"
#include "chief/stats/stats_tracker.h"
#include "chief/term/token.h"
#include "common/checkpoint_format/naming.h"
#include "common/status/exit_code.h"
#include "common/storage/local/local_storage.h"
#include "common/storage/local/no_room.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;

TEST_CASE("job store: the hosts that failed are known to the next chief, and damaged statistics hinder nothing",
          "[server]") {
  Job job;
  job.Train();
  WorkerStatsFile stats;
  HostStats& host = *stats.add_hosts();
  host.set_host("alpha");
  host.set_failures(3);
  host.set_excluded(true);
  host.set_cause("worker-1 died of signal 11");
  REQUIRE((*job.Open())->WriteStats(EncodeWorkerStats(stats)).ok());

  const std::vector<HostRecord> hosts = (*job.Open())->recovered().hosts;
  CHECK(hosts == std::vector<HostRecord>{{"alpha", 3, true, "worker-1 died of signal 11"}});

  Write(job.In("stats/worker_stats.json"), "{");
  CHECK((*job.Open())->recovered().hosts.empty());
}

TEST_CASE("job store: the last events of a chief that was wrong are in logs/, under its term", "[server]") {
  Job job;
  const auto store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());

  REQUIRE((*store)->WriteLastEvents("E 1 Tick\n").ok());

  CHECK(Read(job.In("logs/last-events-term-1.txt")) == "E 1 Tick\n");
}

TEST_CASE("job store: a standby takes the lock when the chief that it followed has ended, and beats in its place",
          "[server]") {
  Job job;
  auto first = job.Open();
  REQUIRE((*first)->Beat().ok());
  CHECK(job.Open().status().code() == absl::StatusCode::kFailedPrecondition);

  const auto second = job.Open(/*succeeds=*/1);
  REQUIRE(second.status() == absl::OkStatus());
  CHECK_FALSE((*first)->Beat().ok());
  REQUIRE((*second)->Beat().ok());
  CHECK(Read(job.In("chief/alive")) == "term 2, beat 1\n");
  REQUIRE((*second)->KeepAddress().ok());  // the first one, which has the lock, still runs
  first->reset();
  REQUIRE((*second)->KeepAddress().ok());

  CHECK_THAT(std::string(job.Open().status().message()), Contains("another chief runs this job"));
  CHECK(job.code == kExitBadJob);
  CHECK((*second)->Beat().ok());
}

TEST_CASE("job store: what one life of the chief stored, the next one finds", "[server]") {
  Job job;
  job.Train();

  const auto store = job.Open();

  REQUIRE(store.status() == absl::OkStatus());
  CheckRightState(**store);
  CHECK((*store)->earlier_address() == "127.0.0.1:4242");
}

TEST_CASE("job store: a bit flipped in any small file leads to the right state; only a token may stop the start",
          "[server]") {
  for (const std::string file : {"LOCKSTEP", "latest", "best", "chief/address", "chief/token", "chief/lock"}) {
    Job job;
    job.Train();
    const std::string content = Read(job.In(file));
    REQUIRE_FALSE(content.empty());
    for (size_t at = 0; at < content.size(); ++at) {
      CAPTURE(file, at, content.substr(at, 1));
      if (at % 7 != 0) continue;
      std::string damaged = Read(job.In(file));
      if (at >= damaged.size()) break;
      const std::string good = damaged;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 5)));
      Write(job.In(file), damaged);

      auto store = job.Open();

      if (!store.ok()) {
        CHECK(file == "chief/token");
        CHECK_THAT(std::string(store.status().message()), Contains(file));
        CHECK(job.code == kExitStorage);
        Write(job.In(file), good);
        store = job.Open();
      }
      REQUIRE(store.status() == absl::OkStatus());
      CheckRightState(**store);
      CHECK(fs::exists(job.In("checkpoints/step-000000010")));
      store->reset();
      if (file == "chief/token" || Read(job.In(file)) == damaged) Write(job.In(file), good);
      fs::remove_all(job.In("set_aside"));
    }
  }
}

// The job's directory as a program without a commit log left it.
void MakeJobOlder(const Job& job) { MakeOlder(*LocalStorage::Open(job.dir()).value()); }

TEST_CASE("job store: a directory of an earlier program is carried over, and serves from then on", "[server]") {
  Job job;
  job.Train();
  MakeJobOlder(job);

  for (int starts = 0; starts < 3; ++starts) {
    auto store = job.Open();
    REQUIRE(store.status() == absl::OkStatus());
    CheckRightState(**store);
    CHECK((*store)->FindBest()->step == 10);
    fs::remove_all(job.In("plans/current"));
  }
}

TEST_CASE("job store: of a directory of an earlier program, the plan that checkpoints were made under is the job's",
          "[server]") {
  for (const std::string damage : {"gone", "other", "old", "old, flipped"}) {
    CAPTURE(damage);
    Job job;
    job.Train();
    MakeJobOlder(job);
    const fs::path current = job.In("plans/current");
    if (damage == "gone") fs::remove(current);
    if (damage == "other") Write(current, absl::StrCat(std::string(64, 'a'), "\n", kData, "\n"));
    if (damage == "old") Write(current, absl::StrCat(Sha256Hex(kPlan), "\n", kData, "\n"));
    if (damage == "old, flipped") {
      Write(current, absl::StrCat(Sha256Hex(kPlan), "\n", kData.substr(1), "e\n"));
    }

    auto store = job.Open();

    REQUIRE(store.status() == absl::OkStatus());
    CheckRightState(**store);
    store->reset();
    fs::remove(current);
    store = job.Open();
    REQUIRE(store.status() == absl::OkStatus());
    CheckRightState(**store);
  }
}

TEST_CASE("job store: older checkpoints are verified one by one, and a damaged one is set aside", "[server]") {
  Job job;
  job.Train();
  {
    auto store = job.Open().value();
    REQUIRE(job.Save(*store, 40, store->recovered().ledger).ok());
  }
  std::string bytes = Read(job.In("checkpoints/step-000000030/model.safetensors"));
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  Write(job.In("checkpoints/step-000000030/model.safetensors"), bytes);
  auto store = job.Open().value();
  std::vector<std::string> messages;
  const std::atomic<bool> stopped{true};
  CHECK(absl::IsCancelled(store->VerifyNext(&stopped, messages).status()));

  int steps = 0;
  while (store->VerifyNext(nullptr, messages).value()) ++steps;

  CHECK(steps >= 1);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Contains("set aside step-000000030"));
  CHECK_FALSE(fs::exists(job.In("checkpoints/step-000000030")));
}

TEST_CASE("job store: a plan that is lost stops the start, which says what it decides", "[server]") {
  Job job;
  job.Train();
  fs::remove(job.In(absl::StrCat("plans/", Sha256Hex(kPlan), ".pb")));

  const auto store = job.Open();

  CHECK(job.code == kExitStorage);
  CHECK_THAT(std::string(store.status().message()), Contains(Sha256Hex(kPlan)) && Contains("--dir"));
}

TEST_CASE("job store: the best checkpoint is verified at the start; one that is lost has a successor", "[server]") {
  const std::string best = "checkpoints/step-000000010";
  for (const std::string damage : {"gone", "weights", "manifest"}) {
    CAPTURE(damage);
    Job job;
    job.Train();
    if (damage == "gone") fs::remove_all(job.In(best));
    if (damage == "weights") {
      std::string bytes = Read(job.In(best + "/model.safetensors"));
      bytes.back() = static_cast<char>(bytes.back() ^ 1);
      Write(job.In(best + "/model.safetensors"), bytes);
    }
    if (damage == "manifest") fs::resize_file(job.In(best + "/manifest.json"), 100);

    auto store = job.Open();

    REQUIRE(store.status() == absl::OkStatus());
    CHECK((*store)->recovered().checkpoint.step == 30);
    CHECK((*store)->recovered().ledger.best_step == 30);  // 0.6 is lower than 0.7
    CHECK((*store)->recovered().ledger.best_value == 0.6);
    CHECK(Read(job.In("best")) == "step-000000030\n");
    CHECK(fs::exists(job.In(best)) == false);
    CHECK(fs::is_empty(job.In("set_aside")) == (damage == "gone"));
    const auto found = (*store)->FindBest();
    REQUIRE(found.status() == absl::OkStatus());
    CHECK(found->step == 30);
  }
}

TEST_CASE("job store: the best checkpoint of a job that never ended before is known", "[server]") {
  Job job;
  auto store = job.Open().value();
  CHECK(store->FindBest()->step == 0);
  EvaluationLedger ledger;
  for (const auto& [step, loss] : std::vector<std::pair<uint64_t, double>>{{10, 0.5}, {20, 0.7}}) {
    ledger = Judge(job.rule(), ledger, step, {.loss = loss, .denominator = 1});
    REQUIRE(job.Save(*store, step, ledger).ok());
  }

  const auto best = store->FindBest();

  REQUIRE(best.ok());
  CHECK(best->step == 10);
  CHECK(best->value == 0.5);
  CHECK_THAT(best->path, Contains("step-000000010"));
}

TEST_CASE("job store: the best checkpoint that goes while the chief lives is not named at the end", "[server]") {
  Job job;
  job.Train();
  auto store = job.Open().value();
  CHECK(store->FindBest()->step == 10);

  fs::remove_all(job.In("checkpoints/step-000000010"));

  const auto found = store->FindBest();
  REQUIRE(found.status() == absl::OkStatus());
  CHECK(found->step == 30);
  CHECK_THAT(found->messages.at(0), Contains("step-000000010"));
}

TEST_CASE("job store: workers that still hold the lost best state do not bring its name back", "[server]") {
  Job job;
  job.Train();
  fs::remove_all(job.In("checkpoints/step-000000010"));
  auto store = job.Open().value();
  EvaluationLedger theirs{.rule = job.rule().id, .step = 50, .value = 0.9, .best_step = 10, .best_value = 0.5};

  for (const uint64_t step : {40, 50, 60}) REQUIRE(job.Save(*store, step, theirs).ok());

  CHECK(store->FindBest()->step == 30);
  CHECK(Read(job.In("best")) == "step-000000030\n");
}

TEST_CASE("job store: under another rule the best so far stays, also when the hint that names it is damaged",
          "[server]") {
  for (const auto& [damaged, older] :
       std::vector<std::pair<bool, bool>>{{false, false}, {true, false}, {false, true}, {true, true}}) {
    CAPTURE(damaged, older);
    Job job;
    job.Train();
    if (older) MakeJobOlder(job);
    job.Set("eval.metric=accuracy");
    if (damaged) Write(job.In("best"), "step-0000000x0\n");
    auto store = job.Open().value();

    for (const uint64_t step : {40, 50, 60}) REQUIRE(job.Save(*store, step, {.rule = 7}).ok());

    CHECK(fs::exists(job.In("checkpoints/step-000000010")));
    // Who cannot tell removes nothing.
    CHECK(fs::exists(job.In("checkpoints/step-000000020")) == (damaged && older));
  }
}

TEST_CASE("job store: the address is written again when somebody removed it", "[server]") {
  Job job;
  auto store = job.Open();
  REQUIRE(store.ok());
  REQUIRE((*store)->WriteAddress("127.0.0.1:4242").ok());
  const std::string before = Read(job.In(layout::kAddress));

  fs::remove(job.In(layout::kAddress));
  CHECK((*store)->KeepAddress().ok());

  CHECK(Read(job.In(layout::kAddress)) == before);
}

TEST_CASE("job store: the address is bound to the lock that somebody made again", "[server]") {
  Job job;
  auto store = job.Open();
  REQUIRE(store.ok());
  REQUIRE((*store)->WriteAddress("127.0.0.1:4242").ok());
  fs::rename(job.In(layout::kLock), job.In("old-lock"));  // its number on the file system is not given again
  Write(job.In(layout::kLock), "");
  const auto storage = LocalStorage::Open(job.dir()).value();
  const absl::Status refused = ReadAddress(*storage).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()),
             Contains("chief/lock was removed and made again") && Contains("is a copy"));

  CHECK((*store)->KeepAddress().ok());

  CHECK(ReadAddress(*storage).value() == "127.0.0.1:4242");
}

TEST_CASE("job store: a disk that stays full gets no event file at each attempt", "[server]") {
  Job job;
  auto store = job.Open();
  REQUIRE(store.ok());
  const std::string records = StartRecord(absl::Now(), 1);
  {
    const NoRoom full;
    for (int attempt = 0; attempt < 3; ++attempt) CHECK_FALSE((*store)->AppendEvents(records).ok());
  }

  CHECK(fs::is_empty(job.In(layout::kEvents)));
  CHECK((*store)->AppendEvents(records).ok());
  CHECK_FALSE(fs::is_empty(job.In(layout::kEvents)));
}

TEST_CASE("job store: a chief that was superseded tells TensorBoard nothing more, whether it had begun a file or not",
          "[server]") {
  const bool began = GENERATE(false, true);
  CAPTURE(began);
  Job job;
  const auto first = job.Open();
  if (began) REQUIRE((*first)->AppendEvents(StartRecord(absl::Now(), 1)).ok());
  const auto second = job.Open(/*succeeds=*/1);
  REQUIRE(second.status() == absl::OkStatus());
  REQUIRE((*second)->AppendEvents(StartRecord(absl::Now(), 9)).ok());
  const auto told = [&] {
    std::map<std::string, uintmax_t> sizes;
    for (const auto& file : fs::directory_iterator(job.In(layout::kEvents))) sizes[file.path()] = file.file_size();
    return sizes;
  };
  const auto before = told();

  const absl::Status refused = (*first)->AppendEvents(StartRecord(absl::Now(), 5));

  CHECK(IsFenced(refused));
  CHECK(before.size() == (began ? 2 : 1));
  CHECK(told() == before);
  CHECK((*second)->AppendEvents(StartRecord(absl::Now(), 10)).ok());
}

}  // namespace
}  // namespace lockstep::chief
