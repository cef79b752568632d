// Formats a job's present state as metrics for Prometheus.
//
// Threading: thread-safe (a pure function, except for the metrics of this process).
#ifndef LOCKSTEP_CHIEF_METRICS_JOB_METRICS_H_
#define LOCKSTEP_CHIEF_METRICS_JOB_METRICS_H_

#include <string>

#include "chief/watch/present_job.h"

namespace lockstep::chief {

// The text of /metrics; docs/monitoring.md lists the names.
std::string JobMetricsText(const PresentJob& present);

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_METRICS_JOB_METRICS_H_
