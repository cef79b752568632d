// The configuration of the chief's core: the job's settings, and what the shell found in the storage at its start.
//
// Threading: immutable.
#ifndef LOCKSTEP_CHIEF_CORE_POLICY_H_
#define LOCKSTEP_CHIEF_CORE_POLICY_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "chief/core/host_scores.h"
#include "common/protocol/fields.h"
#include "common/protocol/ids.h"
#include "common/protocol/messages.h"

namespace lockstep::chief {

struct JobPolicy {
  std::string job;  // id
  Lineage lineage;
  std::string metagraph;  // fingerprint
  TrainingPolicy training;
  uint32_t min_workers = 1;
  uint32_t max_workers = 1;
  uint32_t expected_workers = 0;        // a first generation waits for so many (at most last_call); 0: not known
  bool lineage_per_generation = false;  // `reduction: fast`
  uint32_t max_failures = 5;
  uint32_t exclude_host_after = 3;  // failures; 0: never
  bool replace_stragglers = false;  // by spare workers; else people are told
  absl::Duration wait_for_min = absl::Minutes(10);
  absl::Duration last_call = absl::Seconds(30);
  absl::Duration heartbeat_limit = absl::Seconds(5);
  absl::Duration ack_limit = absl::Seconds(1);
  absl::Duration no_progress_limit = absl::Seconds(10);
  absl::Duration save_every = absl::InfiniteDuration();    // `checkpoint.every: 10m`
  bool save_automatic = false;                             // `checkpoint.every: auto`
  absl::Duration max_duration = absl::InfiniteDuration();  // `duration: 2h`
  bool frozen_share = false;                               // shares.h; of the state's layout
  LS_FIELDS(JobPolicy, job, lineage, metagraph, training, min_workers, max_workers, expected_workers,
            lineage_per_generation, max_failures, exclude_host_after, replace_stragglers, wait_for_min, last_call,
            heartbeat_limit, ack_limit, no_progress_limit, save_every, save_automatic, max_duration, frozen_share)
};

// An earlier repair: replicas differed and the job went back (rule 22).
struct PastRepair {
  uint64_t found_at = 0;           // the step at which they differed
  std::vector<std::string> hosts;  // of the workers in the minority
  LS_FIELDS(PastRepair, found_at, hosts)
};

// A worker or host that is kept away from the job (drains.h).
struct Drain {
  std::string target;  // a worker's name, or a host's
  std::string host;    // of the named worker; empty if a host is named
  LS_FIELDS(Drain, target, host)
};

// The state of the storage. The shell has claimed the term and has published step 0 if the storage was empty (rule 18),
// so a checkpoint always exists.
struct RecoveredState {
  Term term = 1;
  SnapshotId checkpoint;  // the newest that verifies; its lineage may be an ancestor of the job's
  std::string plan_hash;  // empty: none was made yet
  Digest data_digest;     // stored with the plan
  absl::Duration trained_for;
  bool evaluated = true;             // the checkpoint's evaluation, if one is due at its step, was completed
  EvaluationLedger ledger;           // of the checkpoint
  std::vector<HostRecord> hosts;     // hosts with failures, as the last chief stored them
  std::optional<PastRepair> repair;  // the job's newest repair
  uint64_t oldest_audited = 0;       // the step of the oldest audited checkpoint; 0 also where there is none
  std::vector<Drain> drains;
  LS_FIELDS(RecoveredState, term, checkpoint, plan_hash, data_digest, trained_for, evaluated, ledger, hosts, repair,
            oldest_audited, drains)
};

// The whole configuration; the first line of a record of events.
struct CoordinatorConfig {
  JobPolicy policy;
  RecoveredState recovered;
  LS_FIELDS(CoordinatorConfig, policy, recovered)
};

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CORE_POLICY_H_
