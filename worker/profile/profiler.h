// Records where the time of training steps goes: spans on one track per kind of work, and totals per piece of work. A
// device is profiled by wrapping it (profiled_device.h), a step runner by StepConfig::profiler. Without profiling there
// is no cost per node; with an attached profiler that is idle the cost is one branch.
//
//   1 idle ──Start──▶ 2 recording ──Stop──▶ 1     works may be added in both states; spans are recorded only in 2
//
// Invariants
//   * All spans are of one thread. Spans of a host device do not nest, so their sum is at most the time from Start to
//     Stop.
//
// Threading: owned by the device's owner thread.
#ifndef LOCKSTEP_WORKER_PROFILE_PROFILER_H_
#define LOCKSTEP_WORKER_PROFILE_PROFILER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lockstep::worker {

// kState: copies and digests of the state between steps.
enum class ProfileTrack : uint8_t { kData, kForward, kBackward, kReduction, kUpdate, kState };
inline constexpr int kProfileTracks = 6;
// "data", "forward", ...
absl::string_view TrackName(ProfileTrack track);

// A piece of work that runs many times: the kernel of a node, or a part of the step outside of kernels.
struct ProfiledWork {
  ProfileTrack track = ProfileTrack::kForward;
  std::string name;                 // of the node
  std::string op;                   // "Conv"; in parentheses if it is no op of a graph: "(update)"
  std::string shapes = {};          // "F32[64, 1, 28, 28] ... -> ..."
  std::string implementation = {};  // of the kernel
  int64_t operations = 0;           // additions and multiplications per run; 0: none or unknown
  int64_t bytes = 0;                // read and written per run; 0: unknown
  bool product = false;             // IsProduct (operations.h)
  size_t workspace_bytes = 0;
};

struct ProfileSpan {
  int work = 0;  // index into works()
  int64_t begin_ns = 0;
  int64_t end_ns = 0;
};

struct ProfileTotal {
  int64_t calls = 0;
  int64_t ns = 0;
};

class Profiler {
 public:
  // Nanoseconds of a clock that never goes backwards.
  using Now = std::function<int64_t()>;

  struct Options {
    size_t most_spans = size_t{1} << 19;  // later spans count only in the totals
    Now now = {};                         // empty: the steady clock
  };

  Profiler() : Profiler(Options{}) {}
  explicit Profiler(Options options);

  // Adds a work and returns its index.
  int Add(ProfiledWork work);
  // Returns the index of the work outside of kernels with this track and op, which is added if missing.
  int Find(ProfileTrack track, absl::string_view op);

  // Drops all records and begins to record.
  void Start();
  void Stop();
  bool keeping() const { return keeping_; }

  int64_t now() const { return options_.now(); }
  void Record(int work, int64_t begin_ns, int64_t end_ns);

  const std::vector<ProfiledWork>& works() const { return works_; }
  // One per work, in the order of works().
  const std::vector<ProfileTotal>& totals() const { return totals_; }
  // The first `most_spans` spans, in the order in which they ended.
  const std::vector<ProfileSpan>& spans() const { return spans_; }
  // Whether spans were dropped.
  bool left_out() const { return left_out_; }
  // The instant of Start, and the time from it to Stop.
  int64_t start_ns() const { return start_ns_; }
  int64_t elapsed_ns() const { return stop_ns_ - start_ns_; }

  // Records its lifetime as a span of a work outside of kernels. Does nothing if `profiler` is null or idle.
  class Scope {
   public:
    Scope(Profiler* profiler, ProfileTrack track, absl::string_view op)
        : profiler_(profiler == nullptr || !profiler->keeping() ? nullptr : profiler),
          work_(profiler_ == nullptr ? 0 : profiler_->Find(track, op)),
          begin_ns_(profiler_ == nullptr ? 0 : profiler_->now()) {}
    ~Scope() {
      if (profiler_ != nullptr) profiler_->Record(work_, begin_ns_, profiler_->now());
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Profiler* const profiler_;  // null: nothing is recorded
    const int work_;
    const int64_t begin_ns_;
  };

 private:
  const Options options_;
  bool keeping_ = false;
  bool left_out_ = false;
  int64_t start_ns_ = 0;
  int64_t stop_ns_ = 0;
  std::vector<ProfiledWork> works_;
  std::vector<int> found_;  // works that Find added
  std::vector<ProfileTotal> totals_;
  std::vector<ProfileSpan> spans_;
};

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_PROFILE_PROFILER_H_
