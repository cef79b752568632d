#include "common/metrics/metrics_text.h"

#include <catch2/catch.hpp>
#include <limits>

namespace lockstep {
namespace {

using Catch::Contains;

TEST_CASE("metrics: values of one name stand together, with help and type once, and labels are escaped", "[metrics]") {
  MetricsText metrics;
  metrics.Counter("lockstep_steps_total", "Steps.\nApplied.", 12, {{"worker", "a"}});
  metrics.Gauge("lockstep_loss", "Loss.", std::numeric_limits<double>::quiet_NaN());
  metrics.Counter("lockstep_steps_total", "Steps.", 3, {{"worker", "b\"\\\n"}});

  CHECK(metrics.Text() ==
        "# HELP lockstep_steps_total Steps. Applied.\n"
        "# TYPE lockstep_steps_total counter\n"
        "lockstep_steps_total{worker=\"a\"} 12\n"
        "lockstep_steps_total{worker=\"b\\\"\\\\\\n\"} 3\n"
        "# HELP lockstep_loss Loss.\n"
        "# TYPE lockstep_loss gauge\n"
        "lockstep_loss Nan\n");
}

TEST_CASE("metrics: a process tells of itself under the usual names", "[metrics]") {
  MetricsText metrics;
  metrics.Process();
  const std::string text = metrics.Text();
  for (const char* name : {"process_cpu_seconds_total", "process_start_time_seconds", "process_resident_memory_bytes",
                           "process_virtual_memory_bytes", "process_open_fds", "process_max_fds"}) {
    CHECK_THAT(text, Contains(std::string("\n") + name + " ") || Catch::StartsWith(std::string(name)));
  }
  CHECK_THAT(text, !Contains("process_start_time_seconds 0\n"));
}

}  // namespace
}  // namespace lockstep
