// Waits as a standby chief: looks at the job's directory periodically until the job must be taken over.
//
// Threading: thread-compatible; call from one thread, with `signals` blocked in all threads.
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

// Reads what the job's directory shows. Codes of the storage; DataLoss: the newest records of the log are damaged.
absl::StatusOr<JobSight> LookAtJob(Storage& directory);
// The same for a job in a bucket.
absl::StatusOr<JobSight> LookAtBucket(BucketStorage& bucket);

// Blocks until the job at `directory` (a path or a bucket) must be taken over, and returns the term to succeed: 0 if no
// chief has begun the job. Cancelled, with the reason, if the job has ended or one of `signals` came; `exit_code` is
// then the job's or 75. `etcd`, unless null, reveals within seconds that a chief is gone, if that chief has a lease
// there (owner_lease.h).
absl::StatusOr<int64_t> StandBy(const std::string& directory, EtcdClient* etcd, const sigset_t& signals,
                                int& exit_code);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_STAND_BY_H_
