// Counts the failures of each host. Only what a process does wrong itself counts: an error that it reports, a crash
// signal, a state that differs from that of the majority. The loss, kill or preemption of a process says nothing about
// its host.
//
//   1 trusted ──`after` failures, and others can do without it──▶ 2 left out ──all failures forgiven──▶ 1
//
// Each new checkpoint forgives one failure of every host, at most once per kForgiveEvery of training. HostPolicy
// decides whether the others can do without a host; the only host of a job is never left out.
//
// Threading: thread-compatible; owned by Coordinator.
#ifndef LOCKSTEP_CHIEF_CORE_HOST_SCORES_H_
#define LOCKSTEP_CHIEF_CORE_HOST_SCORES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "chief/core/limits.h"
#include "common/protocol/fields.h"

namespace lockstep::chief {

// The record of a host with failures; it is stored for the next chief.
struct HostRecord {
  std::string host;
  uint32_t failures = 0;  // not forgiven yet
  bool excluded = false;
  std::string cause;  // of the newest failure
  LS_FIELDS(HostRecord, host, failures, excluded, cause)
};

class HostScores {
 public:
  static constexpr absl::Duration kForgiveEvery = absl::Minutes(10);

  // `after`: failures that exclude a host; 0: none is ever excluded. `trained_for`: the job's training time so far.
  HostScores(uint32_t after, const std::vector<HostRecord>& before, absl::Duration trained_for)
      : after_(after), forgiven_at_(trained_for) {
    for (const HostRecord& record : before) {
      if (!record.host.empty() && hosts_.size() < kMaxWorkers) hosts_[record.host] = record;
    }
  }

  // A worker of this name is on `host`. Supervisors know processes by name only.
  void Came(const std::string& name, const std::string& host) {
    if (host_of_.size() < kMaxWorkers || host_of_.count(name) != 0) host_of_[name] = host;
  }
  // The host of the newest worker of this name; empty if it is not known.
  std::string HostOf(const std::string& name) const {
    const auto found = host_of_.find(name);
    return found == host_of_.end() ? "" : found->second;
  }

  // Counts a failure of `host`. Returns true if it has failed often enough to be excluded.
  bool Failed(const std::string& host, const std::string& cause) {
    if (host.empty() || (hosts_.size() >= kMaxWorkers && hosts_.count(host) == 0)) return false;
    HostRecord& record = hosts_[host];
    record.host = host;
    record.cause = cause;
    ++record.failures;
    return after_ != 0 && (record.excluded || record.failures >= after_);
  }
  // Whether this job excludes hosts at all.
  bool MayExclude() const { return after_ != 0; }
  // REQUIRES: MayExclude().
  void Exclude(const std::string& host) { hosts_[host].excluded = true; }
  bool IsExcluded(const std::string& host) const {
    const auto found = hosts_.find(host);
    return after_ != 0 && found != hosts_.end() && found->second.excluded;
  }
  bool AnyExcluded() const {
    for (const auto& [host, record] : hosts_) {
      if (IsExcluded(host)) return true;
    }
    return false;
  }
  uint32_t FailuresOf(const std::string& host) const {
    const auto found = hosts_.find(host);
    return found == hosts_.end() ? 0 : found->second.failures;
  }
  // Why a worker of this host is refused.
  std::string RefusalText(const std::string& host) const {
    const auto found = hosts_.find(host);
    if (found == hosts_.end()) return "";
    const HostRecord& record = found->second;
    return absl::StrCat("host ", host, " is left out of this job: ", record.failures,
                        " failures that are not forgiven, the last one: ", record.cause,
                        ". Repair the host; the job forgives as it goes on, and with failure.exclude_host_after: 0 it "
                        "takes every host");
  }

  // A save of `step` was published, after the job had trained for `trained_for`. Returns the hosts that are no longer
  // excluded.
  std::vector<std::string> SavePublished(uint64_t step, absl::Duration trained_for) {
    if (step <= highest_published_) return {};
    highest_published_ = step;
    if (trained_for - forgiven_at_ < kForgiveEvery) return {};
    forgiven_at_ = trained_for;
    std::vector<std::string> trusted;
    for (auto& [host, record] : hosts_) {
      record.failures -= record.failures == 0 ? 0 : 1;
      if (record.failures == 0 && record.excluded) trusted.push_back(host);
    }
    std::erase_if(hosts_, [](const auto& entry) { return entry.second.failures == 0; });
    return trusted;
  }

  // Sorted by host.
  std::vector<HostRecord> Records() const {
    std::vector<HostRecord> records;
    for (const auto& [host, record] : hosts_) {
      records.push_back(record);
      records.back().excluded = IsExcluded(host);
    }
    return records;
  }

 private:
  uint32_t after_;
  absl::Duration forgiven_at_;  // the training time of the last forgiveness
  uint64_t highest_published_ = 0;
  std::map<std::string, HostRecord> hosts_;     // hosts with failures
  std::map<std::string, std::string> host_of_;  // by worker name
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_HOST_SCORES_H_
