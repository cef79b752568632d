// A job in a bucket over several lives of its chief: JobStore over objects in memory, and over S3 on a fake server.
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "chief/events/event_record.h"
#include "chief/server/job_store_bucket_harness.h"
#include "chief/server/job_store_harness.h"
#include "chief/standby/stand_by.h"
#include "chief/stats/history_lines.h"
#include "common/job_place/job_place.h"
#include "common/object_store/memory_object_store.h"
#include "common/object_store/s3_on_fake.h"
#include "common/storage/files.h"

namespace lockstep::chief {
namespace {

using Catch::Contains;
using Catch::StartsWith;

TEST_CASE("bucket: what one life of the chief stored, the next one finds", "[server][object_store]") {
  BucketJob job(GENERATE(false, true));
  job.Train();

  const auto store = job.Open();

  REQUIRE(store.status() == absl::OkStatus());
  CheckRightState(**store);
  CHECK((*store)->ReadPlan(Sha256Hex(kPlan)).value() == kPlan);
  CHECK((*store)->earlier_address() == "127.0.0.1:4242");
  const Share share = (*store)->ShareOf(0, 1).value();
  CHECK((*store)->ReadShare((*store)->recovered().checkpoint, share, 0, 4).value() == std::string(4, 30));
  CHECK((*store)->FindBest()->step == 10);
  CHECK_THAT((*store)->FindBest()->path, Contains(job.PrefixOf(10)));
  CHECK(job.Standing() == job.Live());
  CHECK(job.Live().size() == 3);  // two, and the best one
}

TEST_CASE("bucket: the token is made once, and chiefs after the first have the same", "[server][object_store]") {
  BucketJob job;
  const std::string token = (*job.Open())->token();

  CHECK(token.size() == 64);
  CHECK((*job.Open())->token() == token);
}

TEST_CASE("bucket: retention takes checkpoints off the record, and then their objects away", "[server][object_store]") {
  BucketJob job(GENERATE(false, true));
  job.Train();
  const auto store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  const std::string old = job.PrefixOf(20);

  EvaluationLedger ledger = (*store)->recovered().ledger;
  for (const uint64_t step : {40, 50}) REQUIRE(job.Save(**store, step, ledger).status() == absl::OkStatus());

  CHECK_FALSE(job.Standing().contains(old));
  CHECK(job.Standing() == job.Live());
  const CommitRecord record = job.Newest();
  for (const std::string& retired : record.retired()) CHECK_FALSE(job.Live().contains(retired));
  CHECK(ReadWholeFile(BucketStorage(job.objects), layout::kLatest, 100).value() ==
        absl::StrCat(BaseName(job.PrefixOf(50)), "\n"));
}

TEST_CASE("bucket: a save that did not come to its record counts for nothing, and the next chief removes it",
          "[server][object_store]") {
  BucketJob job(GENERATE(false, true));
  job.Train();
  Upload upload;
  {
    WatchedObjects watched(*job.objects);
    job.place = [&] { return std::make_unique<JobPlace>(&watched); };
    const auto store = job.Open();
    REQUIRE(store.status() == absl::OkStatus());
    // Everything but the record: killed when the slot is to be filled.
    bool killed = false;
    const std::set<std::string> before = job.Standing();
    watched.before = [&] {
      for (const std::string& folder : job.Standing()) {
        const bool whole = BucketStorage(job.objects).Exists(JoinPath(folder, layout::kManifest)).value();
        killed = killed || (!before.contains(folder) && whole);
      }
      return killed ? absl::UnavailableError("killed") : absl::OkStatus();
    };
    REQUIRE_FALSE(job.Save(**store, 40, (*store)->recovered().ledger).ok());
    REQUIRE(job.Standing().size() == before.size() + 1);
    upload = job.objects->StartUpload("checkpoints/step-000000050.t2-abcd/model.safetensors").value();
  }
  job.place = [&] { return std::make_unique<JobPlace>(job.objects); };

  const auto store = job.Open();

  REQUIRE(store.status() == absl::OkStatus());
  CheckRightState(**store);
  CHECK(job.Standing() == job.Live());
  CHECK(job.objects->ListUploads("").value().empty());
}

TEST_CASE("bucket: whenever a chief is killed in a save, the next one has all of it or nothing",
          "[server][object_store]") {
  size_t with = 0;
  size_t without = 0;
  for (int last = 1;; ++last) {
    BucketJob job;
    job.Train();
    WatchedObjects watched(*job.objects);
    job.place = [&] { return std::make_unique<JobPlace>(&watched); };
    auto store = job.Open();
    REQUIRE(store.status() == absl::OkStatus());
    int requests = 0;
    watched.before = [&] { return ++requests > last ? absl::UnavailableError("killed") : absl::OkStatus(); };
    const EvaluationLedger ledger = (*store)->recovered().ledger;
    const SaveAttempt attempt = job.TrySave(**store, 40, ledger);
    store->reset();
    watched.before = [] { return absl::OkStatus(); };

    const auto next = job.Open();

    INFO("killed after request " << last);
    REQUIRE(next.status() == absl::OkStatus());
    const uint64_t step = (*next)->recovered().checkpoint.step;
    REQUIRE((step == 30 || step == 40));
    if (attempt.published) REQUIRE(step == 40);
    (step == 40 ? with : without)++;
    REQUIRE(job.Standing() == job.Live());
    if (requests <= last) break;
  }
  CHECK(with > 0);
  CHECK(without > 5);
}

TEST_CASE("bucket: whichever answer is lost in a save, the next attempt at it commits", "[server][object_store]") {
  for (int lost = 1;; ++lost) {
    BucketJob job;
    job.Train();
    const auto store = job.Open();
    REQUIRE(store.status() == absl::OkStatus());
    int requests = 0;
    job.memory.next_fault = [&] { return ++requests == lost ? ObjectFault::kAnswerLost : ObjectFault::kNone; };

    SaveAttempt attempt = job.TrySave(**store, 40, (*store)->recovered().ledger);
    const bool met = requests >= lost;
    // What the log has now, or may have, is whole, also if this chief dies here.
    for (const std::string& live : job.Live()) REQUIRE(job.Standing().contains(live));
    if (!attempt.published) attempt = job.TrySave(**store, 40, (*store)->recovered().ledger);

    INFO("the answer to request " << lost << " was lost");
    REQUIRE(attempt.status == absl::OkStatus());
    REQUIRE_FALSE(job.PrefixOf(40).empty());
    const auto next = job.Open();
    REQUIRE((*next)->recovered().checkpoint.step == 40);
    REQUIRE(job.Standing().contains(job.PrefixOf(40)));
    if (!met) break;
  }
}

TEST_CASE("bucket: a chief that was followed in the middle of a save commits nothing", "[server][object_store]") {
  int fenced = 0;
  int committed = 0;
  for (int at = 1;; ++at) {
    BucketJob job;
    job.Train();
    BucketJob& other = job;
    WatchedObjects watched(*job.objects);
    job.place = [&] { return std::make_unique<JobPlace>(&watched); };
    const auto first = job.Open();
    REQUIRE(first.status() == absl::OkStatus());
    std::unique_ptr<JobStore> second;
    int requests = 0;
    watched.before = [&] {
      if (++requests != at) return absl::OkStatus();
      job.place = [&] { return std::make_unique<JobPlace>(job.objects); };
      second = std::move(*other.Open(/*succeeds=*/2));
      return absl::OkStatus();
    };

    const SaveAttempt attempt = job.TrySave(**first, 40, (*first)->recovered().ledger);

    if (requests < at) break;
    INFO("followed at request " << at);
    REQUIRE(second != nullptr);
    const uint64_t step = second->recovered().checkpoint.step;
    REQUIRE(job.Newest().term() == 3);
    REQUIRE(job.PrefixOf(40).empty() == (step == 30));
    if (!attempt.published) {
      ++fenced;
      REQUIRE(IsFenced(attempt.status));
    } else {
      ++committed;
      REQUIRE(step == 40);
    }
    REQUIRE(IsFenced(job.TrySave(**first, 50, (*first)->recovered().ledger).status));
    // What it left goes when the next chief starts.
    const auto third = job.Open(/*succeeds=*/3);
    REQUIRE(third.status() == absl::OkStatus());
    REQUIRE((*third)->recovered().checkpoint.step == step);
    REQUIRE(job.Standing() == job.Live());
  }
  CHECK(fenced > 5);
  CHECK(committed > 0);
}

TEST_CASE("bucket: a damaged checkpoint stays where it is, the record says why, and no sweep takes it",
          "[server][object_store]") {
  BucketJob job;
  job.Train();
  const std::string bad = job.PrefixOf(30);
  const std::string file = JoinPath(bad, "model.safetensors");
  std::string bytes = ReadWholeFile(BucketStorage(job.objects), file, 1 << 20).value();
  bytes.back() ^= 1;
  REQUIRE(job.objects->Put(file, bytes, PutCondition::kNone).ok());

  for (int start = 0; start < 2; ++start) {
    const auto store = job.Open();
    REQUIRE(store.status() == absl::OkStatus());
    CHECK((*store)->recovered().checkpoint.step == 20);
    REQUIRE(job.Newest().set_aside_size() == 1);
    CHECK(job.Newest().set_aside(0).prefix() == bad);
    CHECK(job.Newest().set_aside(0).why() == "bad");
    CHECK(job.Standing().contains(bad));
  }
  REQUIRE(BucketStorage(job.objects).RemoveTree(bad).ok());  // by hand
  REQUIRE(job.Open().status() == absl::OkStatus());
  CHECK(job.Newest().set_aside().empty());
}

TEST_CASE("bucket: when nothing verifies the job stops, and begins no new one", "[server][object_store]") {
  BucketJob job;
  job.Train();
  for (const std::string& prefix : job.Live()) {
    REQUIRE(job.objects->Put(JoinPath(prefix, "model.safetensors"), "no", PutCondition::kNone).ok());
  }

  const auto store = job.Open();

  CHECK(store.status().code() == absl::StatusCode::kDataLoss);
  CHECK(job.code == kExitStorage);
  CHECK_THAT(std::string(store.status().message()), Contains("verifies"));
}

TEST_CASE("bucket: behind a damaged record the checkpoint that it committed is found, and nothing is swept",
          "[server][object_store]") {
  BucketJob job;
  job.Train();
  const std::string newest = job.PrefixOf(30);
  Listing log = job.objects->List({.prefix = "log/"}).value();
  for (const ListedObject& record : log.objects) {  // all that know it
    const std::string bytes = job.objects->Get(record.key, 1 << 20).value();
    if (!absl::StrContains(bytes, newest)) break;
    REQUIRE(job.objects->Put(record.key, bytes.substr(0, 100), PutCondition::kNone).ok());
  }
  const std::string part = "checkpoints/step-000000040.t1-abcd";
  REQUIRE(job.objects->Put(JoinPath(part, "model.safetensors"), "a part", PutCondition::kNone).ok());

  const auto store = job.Open();

  REQUIRE(store.status() == absl::OkStatus());
  CHECK((*store)->recovered().checkpoint.step == 30);
  CHECK(job.Live().contains(newest));
  CHECK(job.Standing().contains(part));
  const auto term = static_cast<int64_t>((*store)->recovered().term);
  REQUIRE(job.Open(/*succeeds=*/term).status() == absl::OkStatus());  // whose newest record is whole
  CHECK_FALSE(job.Standing().contains(part));
}

TEST_CASE("bucket: a repair goes back to the newest audited checkpoint, and the newer ones stay aside",
          "[server][object_store]") {
  BucketJob job;
  job.Train();
  auto store = job.Open();
  REQUIRE(store.status() == absl::OkStatus());
  EvaluationLedger ledger = (*store)->recovered().ledger;
  REQUIRE(job.Save(**store, 40, ledger, /*audited=*/false).status() == absl::OkStatus());
  const std::string newer = job.PrefixOf(40);

  std::vector<std::string> messages;
  const RecordRepair order{.lineage = "after~2", .found_at = 42, .hosts = {"alpha"}};
  const auto repair = (*store)->Repair(order, messages);

  REQUIRE(repair.status() == absl::OkStatus());
  CHECK(repair->checkpoint.step == 30);
  CHECK(repair->set_aside_from == 40);
  REQUIRE(messages.size() == 1);
  CHECK_THAT(messages[0], Contains(newer));
  store->reset();
  const auto next = job.Open();
  REQUIRE(next.status() == absl::OkStatus());
  CHECK((*next)->recovered().checkpoint.step == 30);
  CHECK(job.Standing().contains(newer));
  CHECK_FALSE(job.Live().contains(newer));
}

TEST_CASE("bucket: a standby hears the chief of the newest term alone", "[server][standby][object_store]") {
  BucketJob job;
  const auto first = job.Open();
  BucketStorage bucket(job.objects);
  REQUIRE((*first)->WriteAddress("127.0.0.1:4242").ok());
  REQUIRE((*first)->Beat().ok());
  CHECK(LookAtBucket(bucket)->beat == "term 1, beat 1\n");
  CHECK(LookAtBucket(bucket)->serves);
  CHECK(ReadAddressInLog(bucket).value() == "127.0.0.1:4242");

  const auto second = job.Open(/*succeeds=*/1);
  REQUIRE(second.status() == absl::OkStatus());
  REQUIRE((*first)->Beat().ok());  // it does not know yet

  CHECK(LookAtBucket(bucket)->term == 2);
  CHECK(LookAtBucket(bucket)->beat.empty());
  CHECK(absl::IsNotFound(ReadAddressInLog(bucket).status()));
  REQUIRE((*second)->RecordEnd(kExitPreempted).ok());
  CHECK(LookAtBucket(bucket)->ended_with == kExitPreempted);
}

TEST_CASE("bucket: the metagraph's events are stored by the first chief alone", "[server][object_store]") {
  BucketJob job;
  int made = 0;
  const auto make = [&] {
    ++made;
    return TextRecord(absl::Now(), 0, "metagraph", "text");
  };
  REQUIRE((*job.Open())->StoreMetagraphEvents(make).ok());
  const auto second = job.Open(/*succeeds=*/1);
  REQUIRE(second.status() == absl::OkStatus());
  REQUIRE((*second)->StoreMetagraphEvents(make).ok());

  CHECK(made == 1);
  const auto events = BucketStorage(job.objects).List(layout::kEvents).value();
  REQUIRE(events.size() == 1);
  CHECK_THAT(events[0].name, StartsWith("events.out.tfevents.0000000000.metagraph."));
}

TEST_CASE("bucket: events and the job's history grow, and go on in new files", "[server][object_store]") {
  BucketJob job;
  const auto store = job.Open();
  const std::string records = TextRecord(absl::Now(), 1, "text", std::string(200'000, 'e'));
  for (int i = 0; i < 2; ++i) REQUIRE((*store)->AppendEvents(records).ok());
  REQUIRE((*store)->AppendEvents("").ok());
  REQUIRE((*store)->AppendLines(kHistoryFolder, "{}\n").ok());
  REQUIRE((*store)->AppendLines(kHistoryFolder, "{\"a\": 1}\n").ok());
  REQUIRE((*store)->WriteStats("{}").ok());

  BucketStorage bucket(job.objects);
  const auto events = bucket.List(layout::kEvents).value();
  REQUIRE(events.size() == 2);
  CHECK(events[0].size > 2 * records.size());
  CHECK(events[1].size < 100);
  const auto history = bucket.List("stats/history").value();
  REQUIRE(history.size() == 1);
  CHECK(ReadWholeFile(bucket, JoinPath("stats/history", history[0].name), 100).value() == "{}\n{\"a\": 1}\n");
}

}  // namespace
}  // namespace lockstep::chief
