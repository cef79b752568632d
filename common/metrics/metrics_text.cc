#include "common/metrics/metrics_text.h"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <system_error>

namespace lockstep {
namespace {

// The help stands on one line, and so do the values of labels; the serializer escapes these itself.
std::string OneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// When this process started, in seconds since 1970; 0 where /proc does not say.
double StartSeconds() {
  std::ifstream stat("/proc/self/stat"), system("/proc/stat");
  std::string text{std::istreambuf_iterator<char>(stat), std::istreambuf_iterator<char>()};
  const size_t name_end = text.rfind(')');  // the second field may hold blanks
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(text.substr(name_end + 1));
  std::string field;
  for (int i = 3; i <= 22 && rest >> field; ++i) {
  }
  double boot = 0;
  for (std::string key; system >> key; std::getline(system, key)) {
    if (key == "btime") {
      system >> boot;
      break;
    }
  }
  const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  return boot == 0 ? 0 : boot + std::strtod(field.c_str(), nullptr) / ticks;
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

}  // namespace

struct MetricsText::Families {
  std::vector<prometheus::MetricFamily> all;
  std::map<std::string, size_t> by_name;

  prometheus::ClientMetric& Add(const std::string& name, const std::string& help, prometheus::MetricType type,
                                const Labels& labels) {
    const auto [at, is_new] = by_name.try_emplace(name, all.size());
    if (is_new) {
      prometheus::MetricFamily& family = all.emplace_back();
      family.name = name;
      family.help = OneLine(help);
      family.type = type;
    }
    prometheus::ClientMetric& metric = all[at->second].metric.emplace_back();
    for (const auto& [label, value] : labels) metric.label.push_back({label, value});
    return metric;
  }
};

MetricsText::MetricsText() : families_(std::make_unique<Families>()) {}
MetricsText::~MetricsText() = default;

void MetricsText::Gauge(const std::string& name, const std::string& help, double value, const Labels& labels) {
  families_->Add(name, help, prometheus::MetricType::Gauge, labels).gauge.value = value;
}

void MetricsText::Counter(const std::string& name, const std::string& help, double value, const Labels& labels) {
  families_->Add(name, help, prometheus::MetricType::Counter, labels).counter.value = value;
}

void MetricsText::Process() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  Counter("process_cpu_seconds_total", "Total user and system CPU time spent in seconds.",
          Seconds(usage.ru_utime) + Seconds(usage.ru_stime));
  Gauge("process_start_time_seconds", "Start time of the process since unix epoch in seconds.", StartSeconds());
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  if (statm >> pages >> resident) {
    const double page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
    Gauge("process_virtual_memory_bytes", "Virtual memory size in bytes.", pages * page_bytes);
    Gauge("process_resident_memory_bytes", "Resident memory size in bytes.", resident * page_bytes);
  }
  std::error_code error;
  const std::filesystem::directory_iterator open_files("/proc/self/fd", error);
  if (!error) {
    Gauge("process_open_fds", "Number of open file descriptors.",
          static_cast<double>(std::distance(begin(open_files), end(open_files))));
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    Gauge("process_max_fds", "Maximum number of open file descriptors.", static_cast<double>(limit.rlim_cur));
  }
}

std::string MetricsText::Text() const {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families_->all);
  return text.str();
}

}  // namespace lockstep
