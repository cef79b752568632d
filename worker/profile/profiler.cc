#include "worker/profile/profiler.h"

#include <chrono>
#include <utility>

namespace lockstep::worker {
namespace {

int64_t SteadyNanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Profiler::Options WithClock(Profiler::Options options) {
  if (options.now == nullptr) options.now = SteadyNanoseconds;
  return options;
}

}  // namespace

absl::string_view TrackName(ProfileTrack track) {
  switch (track) {
    case ProfileTrack::kData:
      return "data";
    case ProfileTrack::kForward:
      return "forward";
    case ProfileTrack::kBackward:
      return "backward";
    case ProfileTrack::kReduction:
      return "reduction";
    case ProfileTrack::kUpdate:
      return "update";
    case ProfileTrack::kState:
      return "state";
  }
  return "?";
}

Profiler::Profiler(Options options) : options_(WithClock(std::move(options))) {}

int Profiler::Add(ProfiledWork work) {
  works_.push_back(std::move(work));
  totals_.emplace_back();
  return static_cast<int>(works_.size()) - 1;
}

int Profiler::Find(ProfileTrack track, absl::string_view op) {
  for (const int index : found_) {
    const ProfiledWork& work = works_[static_cast<size_t>(index)];
    if (work.track == track && work.op == op) return index;
  }
  found_.push_back(Add({.track = track, .name = std::string(op), .op = std::string(op)}));
  return found_.back();
}

void Profiler::Start() {
  totals_.assign(works_.size(), {});
  spans_.clear();
  keeping_ = true;
  left_out_ = false;
  start_ns_ = stop_ns_ = now();
}

void Profiler::Stop() {
  stop_ns_ = now();
  keeping_ = false;
}

void Profiler::Record(int work, int64_t begin_ns, int64_t end_ns) {
  if (!keeping_) return;
  ProfileTotal& total = totals_[static_cast<size_t>(work)];
  ++total.calls;
  total.ns += end_ns - begin_ns;
  if (spans_.size() < options_.most_spans) {
    spans_.push_back({work, begin_ns, end_ns});
  } else {
    left_out_ = true;
  }
}

}  // namespace lockstep::worker
