// A storage that refuses for a while, one that does not answer, and checkpoints that cannot be restored.
#include <catch2/catch.hpp>
#include <set>

#include "chief/core/chief_harness.h"

namespace lockstep::chief {
namespace {

using Catch::Matchers::Contains;

size_t Errors(const ChiefHarness& chief) {
  size_t errors = 0;
  for (const Announce& line : chief.All<Announce>()) errors += line.level == Level::kError ? 1 : 0;
  return errors;
}

// The members serve what the chief asks of them, a second of time after another.
void Train(ChiefHarness& chief, uint64_t& step, int seconds) {
  for (int i = 0; i < seconds && !chief.ended(); ++i) {
    chief.Advance(absl::Seconds(1));
    chief.StepTo(++step);
    FakeWorker& first = chief.worker(0);
    if (first.requests.erase(RequestKind::kSnapshot) == 0) continue;
    chief.worker(1).requests.erase(RequestKind::kSnapshot);
    if (first.snapshots.empty()) chief.TakeSnapshots(SnapshotCause::kDue);
  }
}

TEST_CASE("storage trouble: attempts back off, the cause is said at intervals, and an end is an end", "[core]") {
  StorageTrouble trouble;
  absl::Time now = absl::FromUnixSeconds(1000);
  CHECK(trouble.retry_at() == absl::InfinitePast());

  CHECK(trouble.Refused(now, "full"));
  CHECK(trouble.retry_at() == now + StorageTrouble::kFirstRetry);
  int attempts = 1, said = 1;
  for (const absl::Time end = now + absl::Hours(1); now < end; ++attempts) {
    now = trouble.retry_at();
    said += trouble.Refused(now, "full") ? 1 : 0;
  }
  CHECK(attempts < 370);
  CHECK(said >= 50);
  CHECK(said <= 61);
  CHECK(trouble.retry_at() == now + StorageTrouble::kLastRetry);
  CHECK_THAT(trouble.Text(now), Contains("full") && Contains("refused for 1h"));

  CHECK(trouble.Worked(now) >= absl::Hours(1));
  CHECK_FALSE(trouble.active());
  CHECK(trouble.Text(now).empty());
  CHECK(trouble.Worked(now) == absl::ZeroDuration());
}

TEST_CASE("coordinator: a full disk ends nothing: training goes on, and a fresh state is saved when it has room again",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  uint64_t step = 10;
  chief.StepTo(step);
  chief.storage_error = "the disk is full; needed 100 bytes, available 3 bytes";
  chief.TakeSnapshots(SnapshotCause::kDue);
  for (int i = 1; i < 3; ++i) {
    // What falls due meanwhile waits for the next attempt.
    chief.StepTo(++step);
    chief.TakeSnapshots(SnapshotCause::kDue);
  }
  CHECK(chief.Count<StoreManifest>() == 1);

  Train(chief, step, 600);
  CHECK_FALSE(chief.ended());
  CHECK(chief.phase() == Phase::kRunning);
  CHECK(chief.worker(0).requests.count(RequestKind::kSnapshotHold) == 0);
  CHECK(chief.Count<StoreManifest>() >= 10);
  CHECK(chief.Count<StoreManifest>() <= 65);
  CHECK(Errors(chief) >= 9);
  CHECK(Errors(chief) <= 11);
  CHECK_THAT(chief.Said(), Contains("available 3 bytes") && Contains("Nothing is lost") && Contains("step 0"));

  chief.storage_error = "";
  const uint64_t before = step;
  Train(chief, step, 40);
  CHECK(chief.View().published_step > before);
  CHECK_THAT(chief.Said(), Contains("the storage works again"));
  chief.storage_error = "full again";
  chief.TakeSnapshots(SnapshotCause::kDue);
  CHECK_THAT(chief.Last<Announce>().text, Contains("full again"));
}

TEST_CASE("coordinator: a save that must be made waits for the storage with the state in memory, however long",
          "[core]") {
  ChiefHarness chief({.workers = 2, .end_step = 50});
  chief.StepTo(40);
  const bool last = GENERATE(false, true);
  chief.storage_error = "the disk is full";
  if (last) {
    chief.StepTo(50);
  } else {
    chief.TakeSnapshots(SnapshotCause::kBest);
  }

  chief.Advance(absl::Hours(1));
  CHECK_FALSE(chief.ended());
  CHECK(chief.Commands<SnapshotEnded>(0).empty());
  CHECK(chief.worker(0).snapshots.size() == 1);
  CHECK(Errors(chief) >= 350);  // every ten seconds
  CHECK(Errors(chief) <= 365);
  CHECK_THAT(chief.View().waiting_for, Contains("the disk is full"));

  chief.storage_error = "";
  chief.Advance(absl::Seconds(31));
  CHECK(chief.View().published_step == (last ? 50 : 40));
  CHECK_THAT(chief.View().waiting_for, !Contains("the disk is full"));
  CHECK(chief.LastCommand<SnapshotEnded>(0).published);
  if (last) CHECK(chief.Last<Exit>().code == 0);
}

TEST_CASE("coordinator: who leaves with the last copy stays until the storage takes it", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(33);
  chief.storage_error = "the disk is full";
  chief.worker(0).leaving = true;
  chief.Say(0, LeaveIntent{absl::Hours(1)});
  chief.ComeToBoundary(0);
  chief.Advance(absl::Minutes(5));
  CHECK(chief.worker(0).exit_code == -1);

  chief.storage_error = "";
  chief.Advance(absl::Seconds(31));

  CHECK(chief.View().published_step == 33);
  CHECK(chief.worker(0).exit_code == 75);
}

TEST_CASE("coordinator: a kernel plan that cannot be stored is kept and stored later", "[core]") {
  ChiefHarness chief({.workers = 0, .expected = 1});
  chief.storing = false;
  chief.Connect(0);
  REQUIRE(chief.Count<StorePlan>() == 1);

  SECTION("the storage refuses for a while") {
    for (int i = 0; i < 3; ++i) {
      chief.Do(StorageFailed{{}, "the disk is full", true});
      chief.Advance(absl::Seconds(10));
      CHECK(chief.Count<StorePlan>() == static_cast<size_t>(i) + 2);
    }
    CHECK(chief.Commands<MakePlan>(0).size() == 1);
    CHECK(Errors(chief) == 1);
    chief.storing = true;
    chief.Do(PlanStored{"plan-1"});
    CHECK_FALSE(chief.Commands<Prepare>(0).empty());
  }
  SECTION("it never will") {
    chief.Do(StorageFailed{{}, "not a directory", false});
    CHECK(chief.Last<Exit>().code == 74);
  }
}

TEST_CASE("coordinator: a save that takes long is named, and what it waits for", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  const bool uploads = GENERATE(false, true);
  chief.storing = false;
  chief.worker(1).keeps_shares = uploads;
  chief.TakeSnapshots(SnapshotCause::kDue);

  chief.Advance(absl::Seconds(29));
  CHECK_THAT(chief.Said(), !Contains("has waited"));
  chief.Advance(absl::Minutes(10));

  CHECK_THAT(chief.Said(), Contains("the save of step 20") && Contains("has waited 30s for"));
  CHECK_THAT(chief.Said(), Contains(uploads ? "shares of worker-1" : "the storage, which does not answer"));
  size_t lines = 0;
  for (const Announce& line : chief.All<Announce>()) lines += line.text.find("has waited") != std::string::npos;
  CHECK(lines == 5);  // after 30, 60, 120, 240 and 480 s
}

TEST_CASE("coordinator: an older snapshot that comes while a newer one is being saved never becomes the newest",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.storing = false;
  chief.TakeSnapshots(SnapshotCause::kDue);
  const SnapshotId newer = chief.Last<StoreManifest>().snapshot;
  const SnapshotId older{newer.lineage, 10, "digest-of-10"};

  chief.Say(0, SnapshotTaken{chief.worker(0).generation, older, SnapshotCause::kDue});
  chief.Do(ManifestStored{newer, newer.digest});
  chief.Do(Published{newer});
  chief.Do(ManifestStored{older, older.digest});
  chief.Do(Published{older});

  CHECK(chief.View().published_step == 20);
  for (const OpenSave& opened : chief.All<OpenSave>()) CHECK(opened.snapshot == newer);
  CHECK(chief.LastCommand<SnapshotEnded>(0).snapshot == older);
  CHECK_FALSE(chief.LastCommand<SnapshotEnded>(0).published);
}

TEST_CASE("coordinator: the broken stream of one that died is not held against who was asked since", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  for (int i : {0, 1}) chief.worker(i).keeps_shares = true;
  chief.TakeSnapshots(SnapshotCause::kDue);
  const SnapshotId snapshot = chief.Last<OpenSave>().snapshot;
  const Incarnation dead = chief.worker(1).id;
  chief.Kill(1);
  REQUIRE(chief.LastCommand<AskShare>(0).share == 1);

  chief.Do(ShareBroken{snapshot, 1, 2, "the stream broke", dead});
  for (const uint32_t share : {0u, 1u}) chief.Do(ShareStored{snapshot, share, 2});

  CHECK(chief.View().published_step == 20);
  CHECK(chief.Commands<AskShare>(0).size() == 2);
}

TEST_CASE("coordinator: no share is awaited of a member that came to rest before anybody told of the snapshot",
          "[core]") {
  ChiefHarness chief({.workers = 3, .min = 3, .end_step = 42});
  chief.StepTo(41);
  FakeWorker& ahead = chief.worker(1);
  const Generation last = ahead.generation;
  const SnapshotId snapshot{ahead.lineage, 42, "digest-of-42"};

  // Worker 1 alone applies the last step. Worker 0 comes to rest before it tells of its snapshot, worker 2 behind it.
  chief.worker(2).mute = true;
  chief.Reset(1);
  ahead.position = Position{42, 0};
  chief.Connect(1);
  chief.Say(1, SnapshotTaken{last, snapshot, SnapshotCause::kEnd});

  std::set<uint32_t> asked;
  for (const AskShare& ask : chief.Commands<AskShare>(1)) asked.insert(ask.share);
  CHECK(asked == std::set<uint32_t>{0, 1});
  chief.Say(2, VerdictAck{last, true, snapshot.lineage, Position{41, 0}, ""});
  CHECK(chief.View().published_step == 42);
}

TEST_CASE("coordinator: no share is awaited of a member whose snapshot is gone", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.worker(1).keeps_shares = true;
  chief.TakeSnapshots(SnapshotCause::kHold);
  REQUIRE(chief.LastCommand<AskShare>(1).share == 1);

  chief.Say(1, ShareFailed{chief.Last<OpenSave>().snapshot, 1, 2, "too many snapshots are held", /*gone=*/true});

  CHECK(chief.View().published_step == 20);
}

TEST_CASE("coordinator: a member that does not tell of its snapshot is awaited once, however often a share breaks",
          "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.worker(0).keeps_shares = true;
  chief.TakeSnapshotAt(0, SnapshotCause::kHold);
  chief.Advance(CheckpointTracker::kShareWait);
  REQUIRE(chief.Commands<AskShare>(0).size() == 2);

  chief.worker(0).keeps_shares = false;
  chief.Do(ShareBroken{chief.Last<OpenSave>().snapshot, 1, 2, "the stream broke", chief.worker(0).id});
  REQUIRE(chief.Count<AbandonSave>() == 1);
  chief.Advance(CheckpointTracker::kRetry);

  CHECK(chief.View().published_step == 20);
}

TEST_CASE("coordinator: where every holder sends other bytes than were announced the job ends, not a save that stays",
          "[core]") {
  ChiefHarness chief({.workers = 1, .end_step = 20});
  chief.worker(0).keeps_shares = true;
  chief.StepTo(20);
  for (uint32_t i = 1; i < CheckpointTracker::kDamagedBeforeEnd; ++i) {
    chief.Do(ShareBroken{chief.Last<OpenSave>().snapshot, 0, 1, "bytes 0 to 24", chief.worker(0).id, /*wrong=*/true});
    CHECK(chief.Count<Exit>() == 0);
    chief.Advance(CheckpointTracker::kRetry);
  }

  chief.Do(ShareBroken{chief.Last<OpenSave>().snapshot, 0, 1, "bytes 0 to 24", chief.worker(0).id, /*wrong=*/true});
  chief.Advance(CheckpointTracker::kRetry);

  CHECK(chief.Last<Exit>().code == 74);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("bytes 0 to 24") && Contains("3 times in a row"));
}

TEST_CASE("coordinator: a save that waits for a share keeps no core busy", "[core]") {
  ChiefHarness chief({.workers = 2});
  chief.StepTo(20);
  chief.worker(0).keeps_shares = true;
  chief.TakeSnapshotAt(0, SnapshotCause::kDue);

  for (int i = 0; i < 4; ++i) {
    chief.Advance(CheckpointTracker::kShareWait / 2);
    CHECK(chief.NextDeadline() > chief.now());
  }
}

TEST_CASE("coordinator: restores that fail end the job only when the checkpoint is damaged and nobody died of them",
          "[core]") {
  const bool dies = GENERATE(false, true);
  const bool damaged = GENERATE(true, false);
  CAPTURE(dies, damaged);
  ChiefHarness chief({.workers = 0, .expected = 2, .term = 2, .checkpoint_step = 20, .plan = "plan-1"});
  for (int i : {0, 1}) chief.worker(i).mute = true;
  const auto form = [&] {
    for (int i : {0, 1}) {
      if (!chief.worker(i).connected) chief.Connect(i);
      chief.worker(i).mute = true;
      chief.Say(i, Ready{"plan-1", "data-1", absl::ZeroDuration(), 100});
    }
    chief.Say(1, PeersTested{1, {chief.worker(0).id}, {}, ""});
    chief.Advance(absl::Seconds(40));
  };
  for (int attempt = 1; attempt <= 3 && !chief.ended(); ++attempt) {
    CAPTURE(attempt);
    form();
    const Generation generation = chief.View().generation;
    REQUIRE(generation.counter == static_cast<uint64_t>(attempt));
    REQUIRE(chief.LastCommand<Form>(0).restore.has_value());
    // That a peer died is seen by the other one first.
    chief.Say(0, PeerFailed{generation, {}, false, "a share does not verify", damaged});
    for (int i : {0, 1}) {
      if (i == 1 && dies) {
        chief.Kill(1);
      } else {
        chief.Say(i, VerdictAck{generation, false, "", {}, ""});
      }
    }
    chief.Advance(absl::Seconds(1));
  }
  if (!dies) chief.Advance(absl::Seconds(40));

  // An error of the storage may pass, however often it comes.
  REQUIRE(chief.ended() == (damaged && !dies));
  if (!chief.ended()) return;
  CHECK(chief.Last<Exit>().code == 74);
  CHECK_THAT(chief.Last<Exit>().reason, Contains("3 times in a row") && Contains("does not verify"));
}

TEST_CASE("coordinator: a save that cannot be sent does not hold up one of a newer step", "[core]") {
  ChiefHarness chief({.workers = 1});
  chief.StepTo(10);
  chief.worker(0).keeps_shares = true;
  chief.TakeSnapshotAt(0, SnapshotCause::kBest);
  chief.Connect(1);
  chief.Advance(absl::Seconds(2));
  chief.MeetAtBoundary();
  chief.StepTo(20);
  chief.TakeSnapshots(SnapshotCause::kBest);

  // Worker 0 cannot upload; worker 1 can, and holds the newer snapshot alone by then.
  size_t seen = 0;
  for (int round = 0; round < 30 && chief.View().published_step < 20; ++round) {
    const std::vector<AskShare> asks = chief.Commands<AskShare>(0);
    for (; seen < asks.size(); ++seen) {
      chief.Say(0, ShareFailed{asks[seen].snapshot, asks[seen].share, asks[seen].shares, "broken pipe"});
    }
    chief.Advance(absl::Milliseconds(500));
  }

  CHECK(chief.View().published_step == 20);
}

TEST_CASE("coordinator: under `fast` one state is saved once, however many lives hold it while the storage refuses",
          "[core]") {
  JobPolicy fast;
  fast.training.digest_in_acks = true;
  fast.lineage_per_generation = true;
  ChiefHarness chief({.workers = 2, .min = 2, .policy = fast});
  chief.storage_error = "no space left";
  chief.StepTo(20);
  chief.TakeSnapshots(SnapshotCause::kBest);
  REQUIRE(chief.Count<AbandonSave>() == 1);

  // Generation after generation stands at this step, and waits for the save.
  for (uint64_t life = 0; life < 2 * kMaxHeldSnapshots; ++life) {
    const int lost = static_cast<int>(life % 2);
    chief.Kill(lost);
    chief.Connect(lost);
    chief.Advance(absl::Milliseconds(500));
    REQUIRE(chief.Members().size() == 2);
    REQUIRE(chief.worker(lost).position == Position{20, 0});
    chief.Forget();
    chief.TakeSnapshots(SnapshotCause::kBest);
    for (int i : {0, 1}) {
      for (const SnapshotEnded& ended : chief.Commands<SnapshotEnded>(i)) {
        CHECK(ended.snapshot.lineage != chief.worker(i).lineage);
      }
      CHECK(chief.worker(i).snapshots.size() <= 2);
    }
  }
  chief.storage_error.clear();
  chief.Advance(absl::Minutes(2));
  CHECK(chief.View().published_step == 20);
  CHECK(chief.Last<PublishCommit>().snapshot.lineage == chief.View().lineage);
}

}  // namespace
}  // namespace lockstep::chief
