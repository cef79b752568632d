#include "chief/standby/stand_by.h"

#include <ctime>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "chief/term/job_log.h"
#include "chief/term/other_chief.h"
#include "common/checkpoint_format/bucket_naming.h"
#include "common/checkpoint_format/naming.h"
#include "common/clock/clock.h"
#include "common/etcd/owner_key.h"
#include "common/job_place/job_place.h"
#include "common/log/log.h"
#include "common/status/exit_code.h"
#include "common/status/status_macros.h"
#include "common/storage/files.h"
#include "common/sync/stop_signals.h"

namespace lockstep::chief {
namespace {

constexpr uint64_t kMaxBeatBytes = 4096;
constexpr absl::Duration kAskEtcdEvery = absl::Milliseconds(300);

// Opens the job's place where it is not open yet. A directory is opened at each look: it may not be made yet, or be
// mounted anew.
absl::StatusOr<JobSight> LookAgain(const std::string& where, std::unique_ptr<JobPlace>& bucket) {
  if (bucket != nullptr) return LookAtBucket(*bucket->bucket());
  absl::StatusOr<std::unique_ptr<JobPlace>> place = JobPlace::Open(where);
  if (absl::IsNotFound(place.status())) return JobSight();
  LS_RETURN_IF_ERROR(place.status());
  if ((*place)->bucket() == nullptr) return LookAtJob((*place)->storage());
  bucket = *std::move(place);
  return LookAtBucket(*bucket->bucket());
}

absl::StatusOr<std::string> ReadBeat(const Storage& storage, const std::string& path) {
  absl::StatusOr<std::string> beat = ReadWholeFile(storage, path, kMaxBeatBytes);
  return absl::IsNotFound(beat.status()) ? std::string() : beat;
}

void TakeRecord(const CommitRecord& record, JobSight& sight) {
  sight.term = record.term();
  sight.record = record.number();
  sight.serves = !record.owner().address().empty();
  if (record.ended()) sight.ended_with = record.exit_code();
}

// Whether the chief of `term` had a lease that has ended. `said`: that etcd does not answer; said once.
bool LeaseEnded(EtcdClient& etcd, int64_t term, StandbyWatch& watch, bool& said) {
  const auto address = etcd.Get(OwnerKey(term));
  if (!address.ok() && !said) {
    LS_LOG(warn, "standing by: ", address.status().message(), "; going by the log meanwhile");
  }
  said = !address.ok();
  return address.ok() && watch.LeaseEnded(term, address->has_value());
}

}  // namespace

// There are no locks, and a chief that was followed may still write its beat: that of the newest term counts.
absl::StatusOr<JobSight> LookAtBucket(BucketStorage& bucket) {
  JobSight sight;
  LS_ASSIGN_OR_RETURN(const std::optional<CommitRecord> record, ReadNewestRecord(bucket));
  if (!record.has_value()) return sight;
  TakeRecord(*record, sight);
  LS_ASSIGN_OR_RETURN(sight.beat, ReadBeat(bucket, layout::AlivePath(sight.term)));
  return sight;
}

absl::StatusOr<JobSight> LookAtJob(Storage& storage) {
  JobSight sight;
  // The log comes last: a chief that ends says so there before it lets go of the lock.
  const std::optional<std::string> holder = LockHolderHere(storage);
  LS_ASSIGN_OR_RETURN(sight.beat, ReadBeat(storage, layout::kAlive));
  JobLog log(storage);
  LS_ASSIGN_OR_RETURN(const std::optional<CommitRecord> record, log.Read());
  if (!record.has_value()) return sight;
  TakeRecord(*record, sight);
  // A chief that was followed while it stood still has the lock until it ends, which is no news of the present one.
  if (holder == LockText(record->owner().pid(), record->owner().host())) sight.lock_holder = holder;
  return sight;
}

absl::StatusOr<int64_t> StandBy(const std::string& directory, EtcdClient* etcd, const sigset_t& signals,
                                int& exit_code) {
  SteadyClock clock;
  StandbyWatch watch;
  std::optional<int64_t> told_term;
  bool told_failure = false, told_etcd = false;
  std::unique_ptr<JobPlace> bucket;
  absl::Time next_look = absl::InfinitePast();
  for (;;) {
    // Before the look: a chief that ends says so in the log before it gives its lease back.
    const bool asks = etcd != nullptr && told_term.value_or(0) > 0;
    const bool ended = asks && LeaseEnded(*etcd, *told_term, watch, told_etcd);
    if (ended || clock.Now() >= next_look) {
      next_look = clock.Now() + StandbyWatch::kLookEvery;
      const absl::StatusOr<JobSight> sight = LookAgain(directory, bucket);
      if (!sight.ok()) {
        watch.LookFailed();
        if (!told_failure) LS_LOG(warn, "standing by: ", sight.status().message(), "; looking again every second");
        told_failure = true;
      } else {
        told_failure = false;
        const StandbyWatch::Verdict verdict = watch.Look(clock.Now(), *sight);
        if (verdict == StandbyWatch::Verdict::kTakeOver) {
          LS_LOG(info, "taking the job over: ", watch.reason());
          return sight->term;
        }
        if (verdict == StandbyWatch::Verdict::kEnd) {
          exit_code = watch.exit_code();
          return absl::CancelledError(absl::StrCat("standing by is over: ", watch.reason()));
        }
        if (told_term != sight->term) {
          LS_LOG(info, "standing by: ",
                 sight->term == 0 ? std::string("no chief has begun the job yet")
                                  : absl::StrCat("the chief of term ", sight->term, " has the job"));
        }
        told_term = sight->term;
      }
    }
    const timespec wait = absl::ToTimespec(etcd != nullptr ? kAskEtcdEvery : StandbyWatch::kLookEvery);
    const int signal = sigtimedwait(&signals, nullptr, &wait);
    if (signal > 0 && signal != SIGUSR1) {  // that one means nothing from others (SignalThread)
      exit_code = kExitPreempted;
      return absl::CancelledError(absl::StrCat("standing by is over: ", StopSignalName(signal)));
    }
  }
}

}  // namespace lockstep::chief
