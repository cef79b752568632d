// The account of a step: what was written down (written_step.h), priced for a machine. A step is the sum of what its
// compute stream does one after another, of what passes between, and of the communication that nothing hides.
//
// Invariants
//   * The rows' times add up to the total, at every level.
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_H_
#define LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_H_

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "worker/account/rates.h"
#include "worker/account/written_step.h"

namespace lockstep::worker {

using LevelMs = std::array<double, kLevels>;

struct AccountRow {
  std::string op;
  std::string kernel;  // of a row by node also name and shapes
  int64_t calls = 0;
  int64_t launches = 0;
  int64_t bytes = 0;
  int64_t operations = 0;
  Bound bound = Bound::kMemory;  // of most of its time today
  LevelMs ms{};
};

struct Account {
  std::vector<AccountRow> rows;   // by op and kernel, longest today first; then what passes between works
  std::vector<AccountRow> nodes;  // of the graph, likewise
  LevelMs total{};
  LevelMs communication{};    // all of it
  LevelMs exposed{};          // of that, what nothing hides
  LevelMs inputs{};           // on their way over the bus, beside the kernels
  LevelMs host{};             // that the host takes to queue it all, beside the kernels
  int64_t reduced_bytes = 0;  // that leave a rank
  int64_t reductions = 0;
  double first_bucket_ms = 0;    // today: when the first bucket is complete, and
  double gate_ms = 0;            // when the last pass ends
  int64_t model_operations = 0;  // of rank 0: three times those of the forward products
  Units units = Units::kF32;     // of most operations
  LevelMs off_rows{};            // products whose rows begin off 16 bytes, and
  LevelMs off_rows_padded{};     // the same as if they did not
  std::set<Rate> rates;          // that occur
};

Account MakeAccount(const WrittenStep& step, const Machine& machine);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_H_
