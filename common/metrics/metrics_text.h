// Collects metrics and writes them in Prometheus's text format 0.0.4, by prometheus-cpp.
//
//   MetricsText metrics;
//   metrics.Counter("lockstep_worker_steps_total", "Steps that a worker applied.", 12, {{"worker", "worker-1"}});
//   response.body = metrics.Text();
//
// Names follow Prometheus's conventions: base units (seconds, bytes), `_total` behind counters.
// Threading: thread-compatible.
#ifndef LOCKSTEP_COMMON_METRICS_METRICS_TEXT_H_
#define LOCKSTEP_COMMON_METRICS_METRICS_TEXT_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {

// The content type of /metrics.
inline constexpr char kMetricsContentType[] = "text/plain; version=0.0.4; charset=utf-8";

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  MetricsText();
  ~MetricsText();

  // A value that rises and falls. Several calls with one name add values for different labels; the help of the first
  // call counts.
  void Gauge(const std::string& name, const std::string& help, double value, const Labels& labels = {});
  // A count that only grows, and starts from 0 in a new process.
  void Counter(const std::string& name, const std::string& help, double value, const Labels& labels = {});
  // Memory, CPU time, descriptors and start of this process, under the names that all Prometheus clients use.
  void Process();

  std::string Text() const;

 private:
  struct Families;

  std::unique_ptr<Families> families_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_METRICS_METRICS_TEXT_H_
