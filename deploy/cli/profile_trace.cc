#include "deploy/cli/profile_trace.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::cli {
namespace {

constexpr int kStepThread = 1;
constexpr int kFirstTrackThread = 2;

// As JSON, whatever bytes a model's names consist of.
std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Name(absl::string_view what, int thread, absl::string_view name) {
  return absl::StrFormat(R"({"ph":"M","pid":1,"tid":%d,"name":"%s","args":{"name":%s}})", thread, what, Quoted(name));
}

// An event but for its instants.
std::string Beginning(const worker::ProfiledWork& work) {
  std::string arguments = absl::StrCat("\"op\":", Quoted(work.op));
  if (!work.shapes.empty()) absl::StrAppend(&arguments, ",\"shapes\":", Quoted(work.shapes));
  if (!work.implementation.empty()) absl::StrAppend(&arguments, ",\"kernel\":", Quoted(work.implementation));
  if (work.operations > 0) absl::StrAppend(&arguments, ",\"operations\":", work.operations);
  if (work.bytes > 0) absl::StrAppend(&arguments, ",\"bytes\":", work.bytes);
  return absl::StrFormat(R"({"ph":"X","pid":1,"tid":%d,"name":%s,"cat":"%s","args":{%s})",
                         kFirstTrackThread + static_cast<int>(work.track), Quoted(work.name), TrackName(work.track),
                         arguments);
}

// Microseconds, to the nanosecond.
std::string Instants(int64_t from_ns, int64_t begin_ns, int64_t end_ns) {
  return absl::StrFormat(R"(,"ts":%.3f,"dur":%.3f})", static_cast<double>(begin_ns - from_ns) * 1e-3,
                         static_cast<double>(end_ns - begin_ns) * 1e-3);
}

}  // namespace

size_t StepsInTrace(const worker::Profiler& profiler, absl::Span<const TracedStep> steps) {
  if (!profiler.left_out()) return steps.size();
  if (profiler.spans().empty()) return 0;
  const int64_t kept_ns = profiler.spans().back().end_ns;
  size_t shown = 0;
  while (shown < steps.size() && steps[shown].begin_ns < kept_ns) ++shown;
  return shown;
}

std::string ChromeTrace(const worker::Profiler& profiler, absl::string_view process,
                        absl::Span<const TracedStep> steps) {
  std::string text(kTraceOpening);
  absl::StrAppend(&text, Name("process_name", 0, process), ",\n", Name("thread_name", kStepThread, "step"));
  for (int t = 0; t < worker::kProfileTracks; ++t) {
    absl::StrAppend(&text, ",\n",
                    Name("thread_name", kFirstTrackThread + t, TrackName(static_cast<worker::ProfileTrack>(t))));
  }
  for (const TracedStep& step : steps.first(StepsInTrace(profiler, steps))) {
    absl::StrAppendFormat(&text, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"name\":\"step %d\",\"cat\":\"step\"%s",
                          kStepThread, step.step, Instants(profiler.start_ns(), step.begin_ns, step.end_ns));
  }
  std::vector<std::string> beginnings;
  for (const worker::ProfiledWork& work : profiler.works()) beginnings.push_back(Beginning(work));
  for (const worker::ProfileSpan& span : profiler.spans()) {
    absl::StrAppend(&text, ",\n", beginnings[static_cast<size_t>(span.work)],
                    Instants(profiler.start_ns(), span.begin_ns, span.end_ns));
  }
  absl::StrAppend(&text, "\n]}\n");
  return text;
}

}  // namespace lockstep::cli
