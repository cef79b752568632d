#include "worker/hooks/step_tracer.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"

namespace lockstep::worker {
namespace {

using Kind = HookInstant::Kind;

// Steps of 10 ns each, of which one piece of work takes 4.
struct Traced {
  int64_t ns = 0;
  StepTracer tracer;
  int work;

  explicit Traced(std::vector<TraceHook> hooks, size_t most_spans = 100)
      : tracer({.most_spans = most_spans, .now = [this] { return ns; }}),
        work(tracer.profiler()->Add({.name = "conv1", .op = "Conv"})) {
    tracer.SetHooks(std::move(hooks));
  }

  std::optional<StepTrace> Step(uint64_t step, bool applied = true) {
    tracer.Begin();
    tracer.profiler()->Record(work, ns + 3, ns + 7);
    ns += 10;
    std::optional<StepTrace> trace = tracer.EndStep(step, applied);
    if (applied) left_out = tracer.Reached(std::vector<HookInstant>{{Kind::kStep, step}});
    return trace;
  }
  std::string left_out;
};

TEST_CASE("step tracer: the steps behind the one of a hook are kept, and no others", "[hooks]") {
  Traced traced({{"slow", {.step = 3}, 2}});

  for (uint64_t step = 1; step <= 4; ++step) CHECK_FALSE(traced.Step(step).has_value());
  const auto trace = traced.Step(5);

  REQUIRE(trace.has_value());
  CHECK(trace->hook == "slow");
  CHECK(trace->at == 3);
  CHECK(trace->applied == 2);
  REQUIRE(trace->steps.size() == 2);
  CHECK(trace->steps[0].step == 4);
  CHECK(trace->steps[0].begin_ns == 30);
  CHECK(trace->steps[1].end_ns == 50);
  REQUIRE(trace->profiler.spans().size() == 2);
  CHECK(trace->profiler.spans()[0].begin_ns == 33);
  CHECK_FALSE(traced.tracer.profiler()->keeping());
  CHECK_FALSE(traced.Step(6).has_value());
}

TEST_CASE("step tracer: a step that broke does not count, and what is beside steps is shown", "[hooks]") {
  Traced traced({{"slow", {.step = 1}, 1}});
  traced.Step(1);

  CHECK_FALSE(traced.Step(2, /*applied=*/false).has_value());
  traced.tracer.Begin();
  traced.tracer.EndOther("slice 1");
  const auto trace = traced.Step(2);

  REQUIRE(trace.has_value());
  REQUIRE(trace->steps.size() == 3);
  CHECK(trace->steps[0].name == "step 2, broken");
  CHECK(trace->steps[1].name == "slice 1");
  CHECK(trace->applied == 1);
}

TEST_CASE("step tracer: one trace at a time; the next may begin where the last one ended", "[hooks]") {
  Traced traced({{"often", {.every = 2}, 3}});
  traced.Step(2);
  traced.Step(3);
  traced.Step(4);
  CHECK(traced.left_out == "often");
  CHECK(traced.Step(5).has_value());

  Traced exact({{"often", {.every = 2}, 2}});
  for (uint64_t step = 1; step <= 3; ++step) exact.Step(step);
  CHECK(exact.Step(4)->at == 2);
  CHECK(exact.left_out.empty());
  exact.Step(5);
  CHECK(exact.Step(6)->at == 4);
}

TEST_CASE("step tracer: at the end of the job what there is is a trace", "[hooks]") {
  Traced traced({{"slow", {.step = 1}, 50}});
  CHECK_FALSE(traced.tracer.Finish().has_value());
  traced.Step(1);
  CHECK_FALSE(traced.tracer.Finish().has_value());
  traced.tracer.Reached(std::vector<HookInstant>{{Kind::kStep, 1}});
  traced.Step(2);

  CHECK(traced.tracer.Finish()->applied == 1);
}

TEST_CASE("step tracer: pieces are those of one file, and say what it has", "[hooks]") {
  Traced traced({{"slow", {.step = 1}, 2}}, /*most_spans=*/1);
  traced.Step(1);
  traced.Step(2);
  const auto trace = traced.Step(3);
  REQUIRE(trace.has_value());

  const std::vector<TracePiece> pieces = PiecesOf(*trace, "mnist", "worker-1", 1);

  REQUIRE(pieces.size() == 1);
  CHECK(pieces[0].worker() == "worker-1");
  CHECK(pieces[0].pieces() == 1);
  CHECK(pieces[0].steps() == 2);
  CHECK(pieces[0].cut());
  CHECK(absl::StartsWith(pieces[0].bytes(), "\x1f\x8b"));
}

TEST_CASE("hook condition: each is met by its own instant", "[hooks]") {
  JobSpec job;
  job.mutable_train()->set_global_batch_size(100);
  job::Hook epochs;
  epochs.mutable_every()->set_milli_epochs(1000);
  const HookCondition every = ConditionOf(epochs, job, 1000);
  CHECK(every.MetBy(HookInstant{Kind::kStep, 20}));
  CHECK_FALSE(every.MetBy(HookInstant{Kind::kStep, 15}));
  CHECK_FALSE(every.MetBy(HookInstant{Kind::kEvaluation, 20}));
  job::Hook timed;
  timed.mutable_every()->mutable_time()->set_seconds(30);
  CHECK_FALSE(ConditionOf(timed, job, 1000).MetBy(HookInstant{Kind::kStep, 30}));
  for (const auto& [on, kind] :
       std::vector<std::pair<job::Hook::On, Kind>>{{job::Hook::ON_NAN, Kind::kNan},
                                                   {job::Hook::ON_EVALUATION, Kind::kEvaluation},
                                                   {job::Hook::ON_CHECKPOINT, Kind::kCheckpoint},
                                                   {job::Hook::ON_END, Kind::kEnd}}) {
    job::Hook hook;
    hook.set_on(on);
    for (const Kind other : {Kind::kStep, Kind::kNan, Kind::kEvaluation, Kind::kCheckpoint, Kind::kEnd}) {
      CHECK(ConditionOf(hook, job, 1000).MetBy(HookInstant{other, 7}) == (other == kind));
    }
  }
}

TEST_CASE("step tracer: hooks that profile are those of the job", "[hooks]") {
  JobSpec job;
  job.add_hooks()->set_stop(true);
  job::Hook* const slow = job.add_hooks();
  slow->set_name("slow");
  slow->set_step(9);
  slow->set_profile(4);

  const std::vector<TraceHook> hooks = TraceHooksOf(job, 1000);

  REQUIRE(hooks.size() == 1);
  CHECK(hooks[0].name == "slow");
  CHECK(hooks[0].when.step == 9);
  CHECK(hooks[0].steps == 4);
}

}  // namespace
}  // namespace lockstep::worker
