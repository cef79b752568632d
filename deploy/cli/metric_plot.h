// One metric of a job as a tall picture for a terminal: a curve with its scale, and below it a row for each worker, all
// on one scale, so that workers can be compared.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_DEPLOY_CLI_METRIC_PLOT_H_
#define LOCKSTEP_DEPLOY_CLI_METRIC_PLOT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "protos/stats.pb.h"

namespace lockstep::cli {

enum class Metric {
  kSamplesPerSecond,
  kStepMs,     // from one step to the next
  kComputeMs,  // of it, what a worker computes
  kWaiting,    // of it, the share that it waits for the others
  kLoss,
};

// "samples_per_second", "step_ms", "compute_ms", "waiting" and "loss"; nullopt for what is none.
std::optional<Metric> ParseMetric(absl::string_view name);

// A value at each place from left to right; nullopt: there is none.
using Curve = std::vector<std::optional<double>>;

// The curve in `rows` rows of blocks from its least to its largest value, which stand at the left, as wide as the curve
// and the labels are. Values that are NaN or infinite are as none.
std::string Plot(const Curve& curve, size_t rows);

// What the job's history says of a metric but the loss, over time, at most `width` columns wide (40 at least). `zone`:
// of the times in it. REQUIRES: `history` is not empty and in the order of its time.
std::string MetricPlot(const std::vector<WorkerInterval>& history, Metric metric, size_t width, absl::TimeZone zone);

// The columns that a curve has room for in a picture of `width`.
size_t PlotColumns(size_t width);

struct StepValue {
  int64_t step = 0;
  double value = 0;
};
// A picture of values of steps, at most `width` columns wide (40 at least); a column has the mean of its steps.
// REQUIRES: `values` is not empty and in the order of its steps.
std::string StepPlot(absl::string_view name, const std::vector<StepValue>& values, size_t width);

}  // namespace lockstep::cli

#endif  // LOCKSTEP_DEPLOY_CLI_METRIC_PLOT_H_
