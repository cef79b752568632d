// Which saves are made: the frozen share, what is left out and what waits, what is tried again.
#include <catch2/catch.hpp>

#include "chief/core/chief_harness.h"
#include "chief/core/storage_trouble.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("coordinator: the frozen share is asked of a worker only when the storage has none", "[core]") {
  JobPolicy policy;
  policy.frozen_share = true;
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.StepTo(20);

  chief.TakeSnapshots(SnapshotCause::kDue);
  const OpenSave opened = chief.Last<OpenSave>();
  CHECK(opened.shares == 3);
  CHECK(chief.Commands<AskShare>(0).size() + chief.Commands<AskShare>(1).size() == 2);
  CHECK(chief.LastCommand<AskShare>(0).shares == 3);
  CHECK(chief.Count<StoreManifest>() == 0);

  SECTION("it has") {
    chief.Do(ShareStored{opened.snapshot, 2, 3});
    CHECK(chief.Commands<AskShare>(0).size() + chief.Commands<AskShare>(1).size() == 2);
  }
  SECTION("it has not") {
    chief.Do(FrozenShareMissing{opened.snapshot});
    CHECK(chief.Commands<AskShare>(0).size() + chief.Commands<AskShare>(1).size() == 3);
  }
  CHECK(chief.Last<StoreManifest>().members.size() == 2);
  CHECK(chief.View().published_step == 20);
}

TEST_CASE("coordinator: while the storage looks for the frozen share a save is not hopeless", "[core]") {
  JobPolicy policy;
  policy.frozen_share = true;
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.StepTo(20);
  chief.TakeSnapshots(SnapshotCause::kDue);
  chief.Advance(absl::Seconds(60));
  CHECK(chief.Count<AbandonSave>() == 0);

  // One that was given up meanwhile is nobody's any more.
  chief.Do(FrozenShareMissing{SnapshotId{"lineage-1", 19, "other"}});
  CHECK(chief.Commands<AskShare>(0).size() + chief.Commands<AskShare>(1).size() == 2);
  chief.Do(ShareStored{chief.Last<OpenSave>().snapshot, 2, 3});
  CHECK(chief.View().published_step == 20);
}

TEST_CASE("coordinator: saves that were due and left out are counted, and said now and then", "[core]") {
  JobPolicy policy;
  policy.training.snapshot_every_steps = 10;
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.StepTo(10);
  chief.TakeSnapshots(SnapshotCause::kDue);
  chief.StepTo(30);
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK(chief.View().saves_skipped == 1);
  CHECK_THAT(chief.Said(), Contains("1 save that was due was left out before step 30"));
  CHECK(chief.View().saves_failed == 0);
}

TEST_CASE("coordinator: where saves wait for each other, each is kept until the storage takes it, and said every 10 s",
          "[core]") {
  JobPolicy policy;
  policy.training.wait_for_saves = true;
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.StepTo(20);
  chief.storage_error = "the disk is full: needed 100 bytes, available 10 bytes";
  chief.TakeSnapshots(SnapshotCause::kDue);
  chief.Advance(absl::Seconds(65));

  CHECK(chief.Commands<SnapshotEnded>(0).empty());
  CHECK(chief.View().saves_failed >= 6);
  CHECK_THAT(chief.View().storage_trouble, Contains("needed 100 bytes"));
  size_t said = 0;
  for (const Announce& line : chief.All<Announce>()) said += line.text.find("the disk is full") != std::string::npos;
  CHECK(said >= 5);
  CHECK(said <= 8);

  chief.storage_error.clear();
  chief.Advance(absl::Seconds(12));
  CHECK(chief.View().published_step == 20);
  CHECK(chief.View().storage_trouble.empty());
}

TEST_CASE("coordinator: where saves by time wait for each other, the next is asked a period after the last was taken",
          "[core]") {
  JobPolicy policy;
  policy.save_every = absl::Seconds(10);
  policy.training.wait_for_saves = GENERATE(false, true);
  ChiefHarness chief({.workers = 2, .policy = policy});
  chief.worker(0).keeps_shares = true;
  chief.StepTo(10);
  chief.Advance(absl::Seconds(11));
  REQUIRE(chief.worker(0).requests.count(RequestKind::kSnapshot) == 1);
  chief.StepTo(20);
  chief.TakeSnapshots(SnapshotCause::kDue);
  chief.worker(0).requests.clear();

  chief.StepTo(21);
  chief.Advance(absl::Seconds(8));
  CHECK(chief.worker(0).requests.count(RequestKind::kSnapshot) == 0);
  chief.Advance(absl::Seconds(4));
  CHECK((chief.worker(0).requests.count(RequestKind::kSnapshot) == 1) == policy.training.wait_for_saves);
}

TEST_CASE("coordinator: a worker that speaks another protocol is refused by name", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.worker(1).hello.protocol = 0;
  chief.Connect(1);
  CHECK(chief.worker(1).exit_code == 78);
  CHECK_THAT(chief.Last<Announce>().text + chief.Said(), Contains("speaks protocol 0"));
}

TEST_CASE("storage trouble: where the job stands still for it, the cause is said every ten seconds", "[core]") {
  StorageTrouble trouble;
  absl::Time now = absl::FromUnixSeconds(1000);
  int said = trouble.Refused(now, "full", /*job_waits=*/true) ? 1 : 0;
  for (const absl::Time end = now + absl::Minutes(10); now < end;) {
    now = trouble.retry_at();
    said += trouble.Refused(now, "full", /*job_waits=*/true) ? 1 : 0;
  }
  CHECK(said >= 58);
  CHECK(said <= 62);
}

TEST_CASE("coordinator: an upload that breaks behind another one of the same share takes nothing away", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  for (int i : {0, 1}) chief.worker(i).keeps_shares = true;
  chief.TakeSnapshots(SnapshotCause::kDue);
  const SnapshotId snapshot = chief.Last<OpenSave>().snapshot;
  const ShareBroken late{snapshot, 1, 2, "the stream broke", chief.worker(1).id};

  chief.Do(ShareStored{snapshot, 1, 2});
  chief.Do(late);
  chief.Do(ShareStored{snapshot, 0, 2});

  CHECK(chief.Count<AbandonSave>() == 0);
  for (const Announce& said : chief.All<Announce>()) CHECK_THAT(said.text, !Contains("broken"));
  CHECK(chief.Commands<AskShare>(0).size() + chief.Commands<AskShare>(1).size() == 2);
  CHECK(chief.View().published_step == 20);
}

}  // namespace
}  // namespace lockstep::chief
