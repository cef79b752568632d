#include "tests/load/crowd.h"

#include <algorithm>
#include <future>

#include "absl/strings/str_cat.h"
#include "common/checkpoint_format/naming.h"
#include "common/net/chief_key.h"
#include "common/net/token.h"
#include "common/status/check.h"

namespace lockstep::load {
namespace {

constexpr size_t kQueued = size_t{1} << 22;
constexpr int kHelpers = 8;
constexpr int kUploaders = 4;
constexpr absl::Duration kBeatEvery = absl::Milliseconds(500);
constexpr absl::Duration kLeastTick = absl::Milliseconds(1);
constexpr absl::Duration kLookEvery = absl::Milliseconds(10);

worker::ChiefLocation LocationOf(const std::string& directory) {
  worker::ChiefLocation location;
  location.file = absl::StrCat(directory, "/", layout::kAddress);
  const absl::StatusOr<std::string> token = ReadCallerToken(absl::StrCat(directory, "/", layout::kToken));
  LS_CHECK(token.ok(), "the chief has made its token before its crowd starts");
  location.key = CallerKeyOf(*token, Role::kJoin).value();
  return location;
}

}  // namespace

Crowd::Crowd(Options options)
    : options_(std::move(options)),
      now_(clock_.Now()),
      client_(LocationOf(options_.directory)),
      inputs_(kQueued),
      work_(kQueued) {
  for (int i = 0; i < kUploaders; ++i) {
    uploaders_.push_back(std::make_unique<worker::ShareUploader>(
        client_.key(), [this](const worker::ShareJob& job, const absl::Status& status) {
          size_t sender = 0;
          {
            MutexLock lock(&mutex_);
            const auto found = senders_.find({job.snapshot, job.share, job.shares});
            if (found == senders_.end()) return;
            sender = found->second;
            senders_.erase(found);
          }
          if (status.ok()) return Post(sender, worker::ShareUploaded{job.snapshot, job.share, job.shares});
          Post(sender, worker::ShareUploadFailed{job.snapshot, job.share, job.shares, std::string(status.message())});
        }));
  }
  for (int i = 0; i < kHelpers; ++i) helpers_.emplace_back([this] { Work(); });
  driver_ = std::thread([this] { Drive(); });
}

Crowd::~Crowd() {
  Ask([this] {
    for (const auto& worker : workers_) worker->Kill();
  });
  work_.Close();
  client_.Shutdown();
  for (std::thread& helper : helpers_) helper.join();
  uploaders_.clear();
  {
    MutexLock lock(&mutex_);
    while (links_ != 0) links_changed_.Wait(&mutex_);
  }
  ended_ = true;
  inputs_.Close();
  driver_.join();
}

void Crowd::LinkBegins() {
  MutexLock lock(&mutex_);
  ++links_;
}

void Crowd::LinkEnded() {
  MutexLock lock(&mutex_);
  if (--links_ == 0) links_changed_.SignalAll();
}

void Crowd::Work() {
  while (auto work = work_.Pop()) (*work)();
}

void Crowd::Drive() {
  while (!ended_) {
    const absl::Time due = alarms_.empty() ? clock_.Now() + absl::Seconds(1) : alarms_.top().when;
    auto input = inputs_.Pop(std::max(absl::ZeroDuration(), due - clock_.Now()));
    now_ = clock_.Now();
    if (input.has_value()) (*input)();
    while (!alarms_.empty() && alarms_.top().when <= now_) {
      const Task task = alarms_.top().task;
      alarms_.pop();
      task();
    }
  }
}

void Crowd::Ask(Task task) {
  const auto done = std::make_shared<std::promise<void>>();
  Run([done, &task] {
    task();
    done->set_value();
  });
  done->get_future().wait();
}

void Crowd::Post(size_t worker, worker::Event event, uint64_t stream) {
  Run([this, worker, stream, event = std::move(event)] {
    workers_[worker]->Step(event, stream);
    AlarmTick(worker);
  });
}

void Crowd::PostAfter(absl::Duration delay, size_t worker, worker::Event event) {
  if (delay == absl::ZeroDuration()) return Post(worker, std::move(event));
  At(now_ + delay, [this, worker, event = std::move(event)] {
    workers_[worker]->Step(event);
    AlarmTick(worker);
  });
}

void Crowd::PostBeatEnd(size_t worker, bool answered, Term term) {
  Run([this, worker, answered, term] { workers_[worker]->BeatEnded(answered, term); });
}

void Crowd::AlarmTick(size_t worker) {
  if (!workers_[worker]->alive()) return;
  const absl::Time when = std::max(workers_[worker]->NextTick(), now_ + kLeastTick);
  if (ticks_[worker] > now_ && ticks_[worker] <= when) return;
  ticks_[worker] = when;
  At(when, [this, worker, when] {
    if (ticks_[worker] != when) return;
    ticks_[worker] = absl::InfinitePast();
    workers_[worker]->Step(worker::Tick{});
    AlarmTick(worker);
  });
}

void Crowd::AlarmBeat(size_t worker, absl::Duration after) {
  if (!workers_[worker]->alive()) return;
  At(now_ + after, [this, worker] {
    workers_[worker]->Beat();
    AlarmBeat(worker, kBeatEvery);
  });
}

void Crowd::Add() {
  const size_t index = workers_.size();
  const Incarnation incarnation{0x10ad, index + 1};
  workers_.push_back(std::make_unique<LoadWorker>(this, index, incarnation));
  ticks_.push_back(absl::InfinitePast());
  Post(index, worker::Tick{});
  // Processes do not start at one instant: beats are spread over their interval.
  AlarmBeat(index, kBeatEvery * static_cast<double>(index * 7919 % 1000) / 1000);
}

void Crowd::Start(size_t workers) {
  Ask([this, workers] {
    for (size_t i = 0; i < workers; ++i) Add();
  });
}

size_t Crowd::KillOne() {
  size_t victim = 0;
  Ask([this, &victim] {
    const Generation newest = Look().newest;
    while (!workers_[victim]->alive() || workers_[victim]->core().generation() != newest) ++victim;
    // Neither the lowest rank nor the highest.
    const size_t next = std::min(victim + workers_.size() / 2, workers_.size() - 1);
    if (workers_[next]->alive() && workers_[next]->core().generation() == newest) victim = next;
    workers_[victim]->Kill();
  });
  return victim;
}

void Crowd::BreakMeeting(const Generation& generation, const Incarnation& dead) {
  const std::string why = dead.IsNone() ? "a peer gave up" : "connection reset by peer";
  for (const size_t waiting : meetings_.Break(generation)) {
    Post(waiting, worker::CollectiveFailed{generation, dead, false, why});
  }
}

void Crowd::Upload(size_t worker, worker::ShareJob job) {
  {
    MutexLock lock(&mutex_);
    senders_[{job.snapshot, job.share, job.shares}] = worker;
  }
  Elsewhere([this, job = std::move(job)] {
    // One of them takes it in its time; each sends one share after another.
    while (!uploaders_[job.share % kUploaders]->Start(job).ok()) {
      if (client_.WaitForShutdown(absl::Milliseconds(5))) return;
    }
  });
}

CrowdView Crowd::Look() const {
  CrowdView view;
  for (const auto& worker : workers_) {
    if (worker->exit_code().has_value()) ++view.exits[*worker->exit_code()];
    if (!worker->alive()) continue;
    ++view.alive;
    ++view.welcomed[worker->welcomed_by()];
    if (worker->core().phase() == worker::SessionCore::Phase::kRunning) {
      view.newest = std::max(view.newest, worker->core().generation());
    }
  }
  for (const auto& worker : workers_) {
    const bool steps = worker->alive() && worker->core().phase() == worker::SessionCore::Phase::kRunning &&
                       worker->core().generation() == view.newest && !view.newest.IsNone();
    if (!steps) continue;
    const uint64_t step = worker->core().position().step;
    view.least_step = view.members == 0 ? step : std::min(view.least_step, step);
    ++view.members;
    if (worker->steps_in_generation() > 0) ++view.stepped;
  }
  return view;
}

CrowdView Crowd::View() {
  CrowdView view;
  Ask([this, &view] { view = Look(); });
  return view;
}

bool Crowd::WaitUntil(const std::function<bool(const CrowdView&)>& condition, absl::Duration limit) {
  const absl::Time until = clock_.Now() + limit;
  while (!condition(View())) {
    if (clock_.Now() >= until) return false;
    // A look at the clock of another thread is no progress of this one: wait as a worker without a chief does.
    client_.WaitForShutdown(kLookEvery);
  }
  return true;
}

}  // namespace lockstep::load
