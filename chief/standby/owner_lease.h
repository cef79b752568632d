// A chief's key in etcd, under a lease. While it exists, the chief of that term lives; its value is the chief's
// address. When it disappears, a standby takes the job over at once (stand_by.h). The commit log alone decides which
// process is the chief: each term has a key of its own, and keys of older terms are not read.
//
// A chief that has been without workers for ChiefBeat::kAlone gives the key up, as a standby elsewhere may reach them.
//
// Threading: thread-compatible; owns one thread, which blocks on etcd. The destructor waits for its current call and
// returns the lease.
#ifndef LOCKSTEP_CHIEF_STANDBY_OWNER_LEASE_H_
#define LOCKSTEP_CHIEF_STANDBY_OWNER_LEASE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "chief/standby/chief_beat.h"
#include "common/etcd/etcd_client.h"
#include "common/sync/mutex.h"

namespace lockstep::chief {

class OwnerLease {
 public:
  // etcd removes expired leases twice a second, so the key disappears within 3.5 s.
  static constexpr absl::Duration kLasts = absl::Seconds(3);
  static constexpr absl::Duration kEvery = absl::Milliseconds(700);

  // `address`: HOST:PORT. `workers` returns the number of workers with an open session; the thread calls it. `etcd` is
  // not owned.
  OwnerLease(EtcdClient* etcd, int64_t term, std::string address, std::function<size_t()> workers);
  ~OwnerLease();
  OwnerLease(const OwnerLease&) = delete;
  OwnerLease& operator=(const OwnerLease&) = delete;

 private:
  void Run();
  // Renews the lease, or takes one and puts the key under it.
  absl::Status Hold();
  absl::Status GiveBack();

  EtcdClient* const etcd_;
  const std::string key_;
  const std::string address_;
  const std::function<size_t()> workers_;
  int64_t lease_ = 0;  // used by the thread; 0: none
  Mutex mutex_;
  CondVar changed_;
  bool stop_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_STANDBY_OWNER_LEASE_H_
