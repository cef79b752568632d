// Summarises a profile as a table: the time between Start and Stop by op and kernel.
//
// Invariants
//   * The rows' times add up to the total: time outside of recorded work is a row of its own (kRestOp).
//
// Threading: thread-safe (pure functions of a stopped profiler).
#ifndef LOCKSTEP_WORKER_PROFILE_PROFILE_REPORT_H_
#define LOCKSTEP_WORKER_PROFILE_PROFILE_REPORT_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "worker/profile/profiler.h"

namespace lockstep::worker {

inline constexpr char kRestOp[] = "(the rest)";

struct ProfileRow {
  std::string op;
  std::string kernel;  // implementation; in ReportByNode also the node's name and shapes
  int64_t calls = 0;
  int64_t ns = 0;
  int64_t operations = 0;  // of all calls
  int64_t bytes = 0;
  friend bool operator==(const ProfileRow&, const ProfileRow&) = default;
};

struct ProfileReport {
  std::vector<ProfileRow> rows;  // longest first; kRestOp last
  int64_t total_ns = 0;
  int64_t products_ns = 0;                         // of matrix products and convolutions
  std::array<int64_t, kProfileTracks> track_ns{};  // by ProfileTrack
  int64_t rest_ns = 0;
};

// One row per op and implementation.
ProfileReport ReportByOp(const Profiler& profiler);
// One row per work.
ProfileReport ReportByNode(const Profiler& profiler);

// The rows as a table with a header, then the total. `steps`: the number of profiled steps.
std::string TableText(const ProfileReport& report, int64_t steps);

// "matrix products and convolutions 71.2%, other kernels 15.0%, data 1.3%, reduction 5.9%, update 4.2%, the rest 2.4%"
std::string SharesText(const ProfileReport& report);

// For a report by op: "on the reference kernels, which are slow, 12.3%: Einsum 8.0%, Mod 4.3%". Empty if none or all of
// the kernels are reference kernels.
std::string SlowText(const ProfileReport& report);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_PROFILE_REPORT_H_
