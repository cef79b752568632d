#include "worker/profile/chrome_trace.h"

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace lockstep::worker {
namespace {

constexpr int kStepThread = 1;
constexpr int kFirstTrackThread = 2;

// As JSON, whatever bytes a model's names consist of.
std::string Quoted(absl::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

class TraceText {
 public:
  TraceText(const Profiler& profiler, int process) : profiler_(profiler), process_(process), text_(kTraceOpening) {}

  void Name(absl::string_view what, int thread, absl::string_view name) {
    Begin("M", thread);
    absl::StrAppendFormat(&text_, R"("name":"%s","args":{"name":%s}})", what, Quoted(name));
  }

  void Step(const TracedStep& step) {
    Begin("X", kStepThread);
    absl::StrAppend(&text_, "\"name\":", Quoted(step.name.empty() ? absl::StrCat("step ", step.step) : step.name),
                    R"(,"cat":"step")", Instants(step.begin_ns, step.end_ns), "}");
  }

  void Spans() {
    std::vector<std::string> beginnings;
    for (const ProfiledWork& work : profiler_.works()) beginnings.push_back(FactsOf(work));
    for (const ProfileSpan& span : profiler_.spans()) {
      const auto index = static_cast<size_t>(span.work);
      Begin("X", kFirstTrackThread + static_cast<int>(profiler_.works()[index].track));
      absl::StrAppend(&text_, beginnings[index], Instants(span.begin_ns, span.end_ns), "}");
    }
  }

  void Cut() {
    const int64_t end_ns = profiler_.spans().empty() ? profiler_.start_ns() : profiler_.spans().back().end_ns;
    Begin("i", kStepThread);
    absl::StrAppendFormat(&text_, R"("s":"g","name":"the trace is cut: more than %d spans","cat":"step","ts":%.3f})",
                          profiler_.spans().size(), Microseconds(end_ns - profiler_.start_ns()));
  }

  std::string Take() { return absl::StrCat(text_, "\n]}\n"); }

 private:
  void Begin(absl::string_view kind, int thread) {
    absl::StrAppendFormat(&text_, R"(%s{"ph":"%s","pid":%d,"tid":%d,)", any_ ? ",\n" : "", kind, process_, thread);
    any_ = true;
  }

  static std::string FactsOf(const ProfiledWork& work) {
    std::string arguments = absl::StrCat("\"op\":", Quoted(work.op));
    if (!work.shapes.empty()) absl::StrAppend(&arguments, ",\"shapes\":", Quoted(work.shapes));
    if (!work.implementation.empty()) absl::StrAppend(&arguments, ",\"kernel\":", Quoted(work.implementation));
    if (work.operations > 0) absl::StrAppend(&arguments, ",\"operations\":", work.operations);
    if (work.bytes > 0) absl::StrAppend(&arguments, ",\"bytes\":", work.bytes);
    return absl::StrFormat(R"("name":%s,"cat":"%s","args":{%s})", Quoted(work.name), TrackName(work.track), arguments);
  }

  static double Microseconds(int64_t ns) { return static_cast<double>(ns) * 1e-3; }

  // To the nanosecond.
  std::string Instants(int64_t begin_ns, int64_t end_ns) const {
    return absl::StrFormat(R"(,"ts":%.3f,"dur":%.3f)", Microseconds(begin_ns - profiler_.start_ns()),
                           Microseconds(end_ns - begin_ns));
  }

  const Profiler& profiler_;
  const int process_;
  std::string text_;
  bool any_ = false;
};

}  // namespace

size_t StepsInTrace(const Profiler& profiler, absl::Span<const TracedStep> steps) {
  if (!profiler.left_out()) return steps.size();
  if (profiler.spans().empty()) return 0;
  const int64_t kept_ns = profiler.spans().back().end_ns;
  size_t shown = 0;
  while (shown < steps.size() && steps[shown].begin_ns < kept_ns) ++shown;
  return shown;
}

std::string ChromeTrace(const Profiler& profiler, absl::string_view process, absl::Span<const TracedStep> steps,
                        int process_number) {
  TraceText text(profiler, process_number);
  text.Name("process_name", 0, process);
  text.Name("thread_name", kStepThread, "step");
  std::array<bool, kProfileTracks> used{};
  for (const ProfiledWork& work : profiler.works()) used[static_cast<size_t>(work.track)] = true;
  for (int t = 0; t < kProfileTracks; ++t) {
    if (!used[static_cast<size_t>(t)]) continue;
    text.Name("thread_name", kFirstTrackThread + t, TrackName(static_cast<ProfileTrack>(t)));
  }
  for (const TracedStep& step : steps.first(StepsInTrace(profiler, steps))) text.Step(step);
  text.Spans();
  if (profiler.left_out()) text.Cut();
  return text.Take();
}

}  // namespace lockstep::worker
