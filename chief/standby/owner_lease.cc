#include "chief/standby/owner_lease.h"

#include <utility>

#include "common/clock/clock.h"
#include "common/etcd/owner_key.h"
#include "common/liveness/activity.h"
#include "common/log/log.h"
#include "common/status/status_macros.h"

namespace lockstep::chief {

OwnerLease::OwnerLease(EtcdClient* etcd, int64_t term, std::string address, std::function<size_t()> workers)
    : etcd_(etcd), key_(OwnerKey(term)), address_(std::move(address)), workers_(std::move(workers)), thread_([this] {
        Run();
      }) {}

OwnerLease::~OwnerLease() {
  {
    MutexLock lock(&mutex_);
    stop_ = true;
    changed_.Signal();
  }
  thread_.join();
}

absl::Status OwnerLease::Hold() {
  if (lease_ != 0) {
    const absl::Status kept = etcd_->KeepAlive(lease_);
    if (!absl::IsNotFound(kept)) return kept;
    lease_ = 0;
  }
  LS_ASSIGN_OR_RETURN(lease_, etcd_->Grant(kLasts));
  const absl::Status put = etcd_->Put(key_, address_, lease_);
  if (!put.ok()) lease_ = 0;
  return put;
}

absl::Status OwnerLease::GiveBack() {
  if (lease_ == 0) return absl::OkStatus();
  const absl::Status revoked = etcd_->Revoke(lease_);
  lease_ = 0;  // else it ends by itself
  return revoked;
}

void OwnerLease::Run() {
  NameThread("lease");
  SteadyClock clock;
  ChiefBeat beat;
  bool fails = false;
  while (true) {
    const absl::Status held = beat.Alone(clock.Now(), workers_()) ? GiveBack() : Hold();
    if (!held.ok() && !fails) {
      LS_LOG(warn, "etcd does not know of this chief: ", held.message(),
             "; trying again. Standby chiefs go by the log");
    } else if (held.ok() && fails) {
      LS_LOG(info, "etcd knows of this chief again");
    }
    fails = !held.ok();
    MutexLock lock(&mutex_);
    if (!stop_) changed_.WaitWithTimeout(&mutex_, kEvery);
    if (stop_) break;
  }
  GiveBack().IgnoreError();
}

}  // namespace lockstep::chief
