// A cost model of one training step on a GPU that is not at hand: the queued work that written_step.h captured, priced
// for a machine. The step time is the time of the kernels on the compute stream, plus the gaps between them, plus the
// communication that no computation hides, plus what the host or the input copies take beyond that.
//
// Invariants
//   * The times of `rows` add up to `total`, at every level.
//
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
  std::string kernel;  // ", again" when a node is recomputed; in Account::nodes then the node's name and its shapes
  int64_t calls = 0;
  int64_t launches = 0;
  int64_t bytes = 0;
  int64_t operations = 0;
  Bound bound = Bound::kMemory;  // what limits most of its time at Level::kToday
  LevelMs ms{};
};

struct Account {
  std::vector<AccountRow> rows;   // by op and kernel, longest at kToday first; then gaps, gate, communication, waits
  std::vector<AccountRow> nodes;  // by node of the graph, longest at kToday first
  LevelMs total{};
  LevelMs communication{};    // all reductions, hidden or not
  LevelMs exposed{};          // the part of `communication` during which the compute stream is idle
  LevelMs inputs{};           // copies of inputs over the bus, which overlap the kernels
  LevelMs host{};             // the host's time to queue everything, which overlaps the kernels
  int64_t reduced_bytes = 0;  // sent by one rank
  int64_t reductions = 0;
  double first_bucket_ms = 0;    // at kToday: when the first bucket is complete
  double gate_ms = 0;            // at kToday: when the last pass ends
  int64_t model_operations = 0;  // floating-point operations of rank 0: three times those of the forward products
  Units units = Units::kF32;     // that run most of the operations
  LevelMs off_rows{};            // products whose rows are not aligned to 16 bytes
  LevelMs off_rows_padded{};     // the same products if their rows were aligned
  std::set<Rate> rates;          // that occur in the step
};

Account MakeAccount(const WrittenStep& step, const Machine& machine);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_ACCOUNT_ACCOUNT_H_
