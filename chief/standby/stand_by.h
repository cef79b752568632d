// A standby chief's wait: looks at the job's directory again and again until the job is to be taken over.
//
// Threading: call it from one thread, with `signals` blocked in all of them.
#ifndef LOCKSTEP_CHIEF_STANDBY_STAND_BY_H_
#define LOCKSTEP_CHIEF_STANDBY_STAND_BY_H_

#include <signal.h>

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chief/standby/standby_watch.h"
#include "common/etcd/etcd_client.h"
#include "common/object_store/bucket_storage.h"
#include "common/storage/storage.h"

namespace lockstep::chief {

// What the job's directory shows now. Codes of the storage; DataLoss: the newest records of the log are damaged.
absl::StatusOr<JobSight> LookAtJob(Storage& directory);
// The same of a job in a bucket.
absl::StatusOr<JobSight> LookAtBucket(BucketStorage& bucket);

// Blocks until the job at `directory`, or in that bucket, is to be taken over, and returns the term to succeed: 0 when
// no chief has begun the job. Cancelled with the reason when the job has ended, or one of `signals` comes; `exit_code`
// is set then, to that of the job or to 75. `etcd`, unless null, tells within seconds of a chief that is gone, if that
// chief has a lease there (owner_lease.h).
absl::StatusOr<int64_t> StandBy(const std::string& directory, EtcdClient* etcd, const sigset_t& signals,
                                int& exit_code);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_STAND_BY_H_
