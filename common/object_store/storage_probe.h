// Proves on a user's own bucket or directory what the safety of a job rests on, before machines are spent on it. All
// that it writes lies under one new name, and is removed at the end.
//
// Threading: thread-safe; blocks on the place. Other jobs may use it meanwhile.
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
  absl::Status status;   // what is wrong, and what to do
  std::string found;     // in a few words, when it is OK
  absl::Duration took;
};

// One for each property, in the order in which they were tried. After one that needs somebody to act on the whole place
// (no rights, no bucket, no answer) the others are left out. `name` is a word that nobody else uses.
std::vector<Proof> ProbeObjectStore(ObjectStore& store, const std::string& name);
// REQUIRES: `storage` is thread-safe.
std::vector<Proof> ProbeDirectory(Storage& storage, const std::string& name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_OBJECT_STORE_STORAGE_PROBE_H_
