#include "chief/events/training_series.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "chief/events/markdown.h"

namespace lockstep::chief {
namespace {

constexpr const char* kCountTags[] = {"cluster/workers",     "cluster/joined",      "cluster/preempted",
                                      "cluster/lost",        "cluster/crashed",     "cluster/repairs",
                                      "cluster/checkpoints", "cluster/chief_starts"};

}  // namespace

Scalars TrainingSeries::OfStep(const StepRecord& record) {
  return {{kLossTag, record.loss}, {"learning_rate", record.learning_rate}};
}

void TrainingSeries::Stepped(absl::string_view worker, int64_t steps, absl::Duration took) {
  std::string name = absl::StrReplaceAll(worker, {{"/", "_"}});  // a tag's parts stand between slashes
  auto it = by_worker_.find(name);
  if (it == by_worker_.end()) {
    if (by_worker_.size() >= kMostWorkers) return;
    it = by_worker_.emplace(std::move(name), Sum()).first;
  }
  it->second.steps += steps;
  it->second.took += took;
}

void TrainingSeries::GradientNormed(int64_t step, double norm) {
  if (!gradient_.has_value() && step > gradient_told_) gradient_ = GradientNorm{step, norm};
}

void TrainingSeries::Changed(absl::string_view line) {
  if (changes_.size() < kMostChanges) {
    changes_.push_back(MarkdownLine(line));
  } else {
    ++changes_left_out_;
  }
}

void TrainingSeries::WentBack() {
  told_.reset();
  rates_from_.reset();
}

TrainingSeries::Told TrainingSeries::Take(absl::Time now, int64_t step, size_t workers, const JobStats& totals,
                                          bool at_end) {
  if (!told_.has_value()) {  // of earlier steps another chief may have told
    gradient_.reset();
    gradient_told_ = step - 1;
  }
  if (told_ == step) {
    Told rates;  // of a job that ends within an interval, whose last step was told already
    if (at_end && rates_from_.has_value() && rates_from_->step < step) TellRates(now, step, rates.values);
    return rates;
  }
  const Counts counts = {
      static_cast<int64_t>(workers), totals.joins(),       totals.preemptions(), totals.losses(), totals.crashes(),
      totals.digest_mismatches(),    totals.checkpoints(), totals.chief_starts()};
  const bool rates_due = at_end || !rates_from_.has_value() || now - rates_from_->when >= kInterval;
  if (!rates_due && counts_ == counts && changes_.empty()) return {};
  told_ = step;
  counts_ = counts;
  Told told;
  for (size_t i = 0; i < counts.size(); ++i) told.values.emplace_back(kCountTags[i], static_cast<double>(counts[i]));
  if (rates_due) {
    TellRates(now, step, told.values);
    if (gradient_.has_value() && gradient_->step <= step) {
      told.gradient = std::exchange(gradient_, std::nullopt);
      gradient_told_ = told.gradient->step;
    }
  }
  for (const std::string& line : std::exchange(changes_, {})) absl::StrAppend(&told.changes, "- ", line, "\n");
  if (changes_left_out_ > 0) absl::StrAppend(&told.changes, "- and ", changes_left_out_, " more\n");
  changes_left_out_ = 0;
  return told;
}

void TrainingSeries::TellRates(absl::Time now, int64_t step, Scalars& values) {
  const std::optional<Mark> from = std::exchange(rates_from_, Mark{now, step});
  if (from.has_value() && now > from->when) {
    values.emplace_back("samples_per_second", static_cast<double>((step - from->step) * global_batch_) /
                                                  absl::ToDoubleSeconds(now - from->when));
  }
  for (auto& [worker, sum] : by_worker_) {
    if (sum.steps == 0) continue;
    values.emplace_back(absl::StrCat("worker/", worker, "/step_ms"),
                        absl::ToDoubleMilliseconds(sum.took) / static_cast<double>(sum.steps));
    sum = {};
  }
}

}  // namespace lockstep::chief
