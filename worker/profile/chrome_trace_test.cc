#include "worker/profile/chrome_trace.h"

#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace lockstep::worker {
namespace {

TEST_CASE("profile trace: it is JSON with one event per span on the track of its kind", "[profile]") {
  int64_t now = 1000;
  Profiler profiler({.now = [&now] { return now; }});
  const int conv = profiler.Add({.name = "a \"quoted\" name \\ \xff",
                                 .op = "Conv",
                                 .shapes = "F32[2] -> F32[2]",
                                 .implementation = "own:conv",
                                 .operations = 7,
                                 .bytes = 16,
                                 .product = true});
  const int grad = profiler.Add({.track = ProfileTrack::kBackward, .name = "g", .op = "ConvGradInput"});
  profiler.Start();
  profiler.Record(conv, 3000, 5500);
  profiler.Record(grad, 5500, 5501);
  profiler.Record(conv, 6000, 7000);
  now = 9000;
  profiler.Stop();

  const std::string text = ChromeTrace(profiler, "job", {{.step = 4, .begin_ns = 1000, .end_ns = 9000}});
  const auto trace = nlohmann::json::parse(text);

  std::map<std::string, int> tracks;
  int events = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name") tracks[event["args"]["name"]] = event["tid"];
    if (event["ph"] != "X") continue;
    ++events;
    if (event["name"] == "g") {
      CHECK(event["tid"] == tracks["backward"]);
      CHECK(event["dur"] == 0.001);
    }
    if (event["name"] == "step 4") CHECK(event["tid"] == tracks["step"]);
    if (event["cat"] != "forward") continue;
    CHECK(event["tid"] == tracks["forward"]);
    CHECK(event["args"]["op"] == "Conv");
    CHECK(event["args"]["kernel"] == "own:conv");
    CHECK(event["args"]["shapes"] == "F32[2] -> F32[2]");
  }
  CHECK(events == 4);
  CHECK(tracks.size() == 3);
  CHECK(absl::StartsWith(text, kTraceOpening));
}

TEST_CASE("profile trace: it has the steps of the spans that were kept, and no others, and says that it was cut",
          "[profile]") {
  Profiler profiler({.most_spans = 2, .now = [] { return 0; }});
  const int work = profiler.Add({.name = "conv", .op = "Conv"});
  const std::vector<TracedStep> steps = {{1, 0, 100}, {2, 100, 200}, {3, 200, 300}};
  profiler.Start();
  profiler.Record(work, 10, 20);
  profiler.Record(work, 110, 120);
  CHECK(StepsInTrace(profiler, steps) == 3);

  profiler.Record(work, 210, 220);

  CHECK(StepsInTrace(profiler, steps) == 2);
  const std::string text = ChromeTrace(profiler, "job", steps);
  CHECK_THAT(text, Catch::Contains("step 2") && !Catch::Contains("step 3"));
  const auto last = nlohmann::json::parse(text)["traceEvents"].back();
  CHECK(last["name"] == "the trace is cut: more than 2 spans");
  CHECK(last["ph"] == "i");
  CHECK(last["ts"] == 0.12);
}

}  // namespace
}  // namespace lockstep::worker
