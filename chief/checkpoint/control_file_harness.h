// Shared helpers for tests of damaged control files: a directory with two checkpoints, and a check that nothing of it
// was lost.
//
// Threading: thread-compatible; tests only.
#ifndef LOCKSTEP_CHIEF_CHECKPOINT_CONTROL_FILE_HARNESS_H_
#define LOCKSTEP_CHIEF_CHECKPOINT_CONTROL_FILE_HARNESS_H_

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "chief/checkpoint/checkpoint_test_util.h"
#include "chief/checkpoint/older_directory.h"
#include "common/checkpoint_format/naming.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"

namespace lockstep::chief {

// Publishes steps 10 and 20 in term 1; term 2 only takes over.
inline void PrepareWithLog(MemoryStorage& storage) {
  auto first = SmallChief::Start(storage, 5).value();
  for (const int64_t step : {10, 20}) REQUIRE(first->Save(SmallState(step)).ok());
  first.reset();
  REQUIRE(SmallChief::Start(storage, 5).ok());
}

// The same directory, as an earlier program without a log would have left it.
inline void Prepare(MemoryStorage& storage) {
  PrepareWithLog(storage);
  MakeOlder(storage);
}

inline std::string Content(const Storage& storage, absl::string_view path) {
  return ReadWholeFile(storage, path, 1 << 20).value();
}

inline std::vector<std::string> StepsSetAside(const Storage& storage) {
  std::vector<std::string> steps;
  for (const std::string& name : Names(storage, layout::kSetAside)) {
    if (absl::StartsWith(name, "step-")) steps.push_back(name);
  }
  return steps;
}

inline void CheckNothingLost(const Storage& storage, const SmallChief& chief) {
  REQUIRE(chief.newest.has_value());
  CHECK(chief.newest->manifest().step() == 20);
  CHECK(Names(storage, layout::kCheckpoints) == std::vector<std::string>{"step-000000010", "step-000000020"});
  CHECK(StepsSetAside(storage).empty());
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_CHECKPOINT_CONTROL_FILE_HARNESS_H_
