// Tests on a user's own bucket or directory the properties that a job's safety depends on, before machines are spent on
// the job. It writes only under one new name, and removes everything at the end.
//
// Threading: thread-safe; blocks on the storage, which other jobs may use at the same time.
#ifndef LOCKSTEP_COMMON_OBJECT_STORE_STORAGE_PROBE_H_
#define LOCKSTEP_COMMON_OBJECT_STORE_STORAGE_PROBE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/object_store/object_store.h"
#include "common/storage/storage.h"

namespace lockstep {

struct Proof {
  std::string property;  // "exclusive"
  absl::Status status;   // the error, with the remedy
  std::string found;     // the result in a few words, when it is OK
  absl::Duration took;
};

// Returns one Proof per property, in the order of the tests. An error of the whole place (no permissions, no bucket, no
// answer) ends the tests. `name` is a unique word.
std::vector<Proof> ProbeObjectStore(ObjectStore& store, const std::string& name);
// REQUIRES: `storage` is thread-safe.
std::vector<Proof> ProbeDirectory(Storage& storage, const std::string& name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_STORAGE_PROBE_H_
