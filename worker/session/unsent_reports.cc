#include "worker/session/unsent_reports.h"

#include <algorithm>
#include <cstddef>

namespace lockstep::worker {
namespace {

constexpr size_t kMaxWaiting = 1024;
static_assert(kMaxWaiting < kMaxRepeated, "a report carries all that waits");
constexpr size_t kMaxEvaluations = 16;

template <typename T>
void AddTo(std::vector<T>& list, size_t most, T value) {
  if (list.size() >= most) list.erase(list.begin());
  list.push_back(std::move(value));
}

}  // namespace

void UnsentReports::Add(StepRecord record) { AddTo(records_, kMaxWaiting, std::move(record)); }

void UnsentReports::Add(StateDigest digest) { AddTo(digests_, kMaxWaiting, std::move(digest)); }

void UnsentReports::Clear() {
  records_.clear();
  digests_.clear();
}

Report UnsentReports::Take(absl::Time now, absl::Duration interval, const Generation& generation,
                           const Lineage& lineage, const Position& position) {
  Report report{generation, lineage, position, std::move(records_), std::move(digests_), {}};
  Clear();
  told_ = position;
  next_ = now + interval;
  return report;
}

void HeldEvaluations::Add(const Lineage& lineage, uint64_t step, const SliceResult& slice) {
  const bool under_way =
      !evaluations_.empty() && evaluations_.back().lineage == lineage && evaluations_.back().step == step;
  if (!under_way) AddTo(evaluations_, kMaxEvaluations, EvalReport{lineage, step, {}});
  evaluations_.back().slices.push_back(slice);
}

void HeldEvaluations::Rename(const Lineage& from, const Lineage& to) {
  for (EvalReport& report : evaluations_) {
    if (report.lineage == from) report.lineage = to;
  }
}

void HeldEvaluations::GoBackTo(uint64_t step, const Lineage& lineage) {
  std::erase_if(evaluations_, [&](const EvalReport& report) { return report.step > step; });
  for (EvalReport& report : evaluations_) report.lineage = lineage;
}

std::vector<EvalReport> HeldEvaluations::Messages() const {
  std::vector<EvalReport> messages;
  for (const EvalReport& evaluation : evaluations_) {
    for (auto slice = evaluation.slices.begin(); slice != evaluation.slices.end();) {
      const auto end = slice + std::min<std::ptrdiff_t>(kMaxRepeated, evaluation.slices.end() - slice);
      messages.push_back(EvalReport{evaluation.lineage, evaluation.step, {slice, end}});
      slice = end;
    }
  }
  return messages;
}

}  // namespace lockstep::worker
