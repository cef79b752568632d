#include "tests/bench/recovery_phases.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep::bench {
namespace {

constexpr double kMsPerNs = 1e-6;

// The first or the last instant of this name in [from, to]; `otherwise` where there is none.
int64_t First(const SessionRecord& record, const char* name, int64_t from, int64_t to, int64_t otherwise) {
  for (auto at = record.instants.lower_bound(from); at != record.instants.upper_bound(to); ++at) {
    if (at->second == name) return at->first;
  }
  return otherwise;
}
int64_t Last(const SessionRecord& record, const char* name, int64_t from, int64_t to, int64_t otherwise) {
  int64_t last = otherwise;
  for (auto at = record.instants.lower_bound(from); at != record.instants.upper_bound(to); ++at) {
    if (at->second == name) last = at->first;
  }
  return last;
}

// The median of the last steps of one generation before `end`, an applied step of it; 0: it has one step.
double UsualStepMs(const SessionRecord& record, std::vector<AppliedStep>::const_iterator end) {
  std::vector<double> steps;
  for (auto at = end; at != record.applied.begin() && static_cast<int>(steps.size()) < kUsualSteps; --at) {
    if (!((at - 1)->generation == end->generation)) break;
    steps.push_back(static_cast<double>(at->at_ns - (at - 1)->at_ns) * kMsPerNs);
  }
  return steps.empty() ? 0 : Median(std::move(steps));
}

}  // namespace

std::optional<Recovery> RecoveryOf(const SessionRecord& record, int64_t fault_ns) {
  const std::vector<AppliedStep>& applied = record.applied;
  const auto after = std::find_if(applied.begin(), applied.end(),
                                  [fault_ns](const AppliedStep& step) { return step.at_ns > fault_ns; });
  if (after == applied.begin() || after == applied.end()) return std::nullopt;
  const auto known = after - 1;
  const Generation before = known->generation;
  const auto next =
      std::find_if(after, applied.end(), [&](const AppliedStep& step) { return !(step.generation == before); });
  if (next == applied.end()) return std::nullopt;
  const int64_t last_step = (next - 1)->at_ns;
  const int64_t end = next->at_ns;
  const int64_t met = std::max(last_step, fault_ns);

  std::array<int64_t, kPhaseNames.size() + 1> at{};
  at[0] = fault_ns;
  at[1] = First(record, "StopComputing", fault_ns, end, met);
  at[2] = std::max(First(record, "ComputingStopped", at[1], end, at[1]), at[1]);
  at[3] = Last(record, "FormCommunicator", at[2], end, at[2]);
  at[4] = Last(record, "CommunicatorFormed", at[3], end, at[3]);
  at[5] = Last(record, "StateSynced", at[4], end, at[4]);
  at[6] = end;

  Recovery recovery;
  for (size_t i = 0; i < kPhaseNames.size(); ++i) {
    recovery.phase_ms[i] = static_cast<double>(at[i + 1] - at[i]) * kMsPerNs;
  }
  recovery.total_ms = static_cast<double>(end - fault_ns) * kMsPerNs;
  recovery.stood_ms = static_cast<double>(end - last_step) * kMsPerNs;
  recovery.usual_ms = UsualStepMs(record, known);
  recovery.late_ms = static_cast<double>(end - known->at_ns) * kMsPerNs -
                     (static_cast<double>(next->step) - static_cast<double>(known->step)) * recovery.usual_ms;
  const uint64_t newest = (next - 1)->step;
  recovery.steps_lost = next->step > newest ? 0 : newest + 1 - next->step;
  return recovery;
}

std::optional<ChiefReturn> ChiefReturnOf(const SessionRecord& record, int64_t fault_ns, int64_t to_ns) {
  const int64_t lost = First(record, "ChiefDisconnected", fault_ns, to_ns, -1);
  if (lost < 0) return std::nullopt;
  const int64_t back = First(record, "ChiefConnected", lost, to_ns, -1);
  if (back < 0) return std::nullopt;
  return ChiefReturn{static_cast<double>(lost - fault_ns) * kMsPerNs, static_cast<double>(back - lost) * kMsPerNs};
}

double LongestStepMs(const SessionRecord& record, int64_t from_ns, int64_t to_ns) {
  double longest = 0;
  for (size_t i = 1; i < record.applied.size(); ++i) {
    const AppliedStep& last = record.applied[i - 1];
    const AppliedStep& step = record.applied[i];
    if (step.at_ns < from_ns || last.at_ns > to_ns || !(step.generation == last.generation)) continue;
    longest = std::max(longest, static_cast<double>(step.at_ns - last.at_ns) * kMsPerNs);
  }
  return longest;
}

}  // namespace lockstep::bench
