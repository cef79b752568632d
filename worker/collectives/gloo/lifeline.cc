#include "worker/collectives/gloo/lifeline.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "worker/collectives/completion.h"

namespace lockstep::worker {

Lifeline::Lifeline(Mesh& mesh, uint64_t slot, absl::Duration ask_every, absl::Duration answer_limit,
                   std::function<void(const absl::Status&)> abort)
    : mesh_(mesh),
      slot_(slot),
      ask_every_(ask_every),
      answer_limit_(answer_limit),
      abort_(std::move(abort)),
      questions_(static_cast<size_t>(mesh.size())),
      answers_(static_cast<size_t>(mesh.size())),
      asking_(mesh, questions_.data(), questions_.size() * sizeof(Word)),
      answering_(mesh, answers_.data(), answers_.size() * sizeof(Word)),
      hearing_(mesh, &heard_, sizeof(heard_)),
      peers_(static_cast<size_t>(mesh.size())) {}

Lifeline::~Lifeline() {
  End();
  if (asking_thread_.joinable()) asking_thread_.join();
  if (hearing_thread_.joinable()) hearing_thread_.join();
}

void Lifeline::Start() {
  asking_thread_ = std::thread([this] { RunAsking(); });
  hearing_thread_ = std::thread([this] { RunHearing(); });
}

void Lifeline::End() {
  MutexLock lock(&mutex_);
  ended_ = true;
  changed_.SignalAll();
}

void Lifeline::Entered(const Call& call) {
  MutexLock lock(&mutex_);
  place_ = {call.sequence, call.tag.step, call.tag.attempt, static_cast<uint32_t>(call.kind)};
}

std::string Lifeline::Place::Name() const {
  Call call;
  call.kind = static_cast<CallKind>(kind);
  call.tag = {.step = step, .attempt = attempt};
  call.sequence = sequence;
  return call.Name();
}

int Lifeline::Silent(absl::Time now) const {
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    if (peers_[peer].asked && now - peers_[peer].when >= answer_limit_) return static_cast<int>(peer);
  }
  return -1;
}

void Lifeline::AskAll(absl::Time now) {
  for (size_t peer = 0; peer < peers_.size(); ++peer) {
    if (static_cast<int>(peer) == mesh_.rank() || peers_[peer].asked) continue;
    peers_[peer] = {true, now};
    questions_[peer] = {Kind::kAsk, place_};
    // An error has broken the mesh.
    asking_.Post(static_cast<int>(peer), slot_, peer * sizeof(Word), sizeof(Word)).IgnoreError();
  }
}

void Lifeline::RunAsking() {
  absl::Time next = SteadyNow() + ask_every_;
  int silent = -1;
  {
    MutexLock lock(&mutex_);
    while (!ended_) {
      const absl::Time now = SteadyNow();
      silent = Silent(now);
      if (silent >= 0) break;
      if (now >= next) {
        AskAll(now);
        next = now + ask_every_;
      }
      // Who is asked is looked at often enough when the questions come often.
      changed_.WaitWithTimeout(&mutex_, std::min(next - now, answer_limit_));
    }
  }
  if (silent < 0) return;
  abort_(
      Blame(absl::AbortedError(absl::StrCat("rank ", silent, " cannot be reached: its connection stands, but it has ",
                                            "not answered for ", absl::FormatDuration(answer_limit_))),
            silent));
}

void Lifeline::RunHearing() {
  for (;;) {
    if (!hearing_.ReceiveFromAnyone(slot_, 0, sizeof(heard_)).ok()) return;
    const absl::StatusOr<int> peer = hearing_.Watch();
    // The watch on every connection tells what happened to one.
    if (!peer.ok()) return;
    Hear(*peer, heard_);
  }
}

void Lifeline::Hear(int peer, const Word& word) {
  Place own;
  {
    MutexLock lock(&mutex_);
    if (word.kind == Kind::kAnswer) {
      peers_[static_cast<size_t>(peer)].asked = false;
      return;
    }
    own = place_;
  }
  const auto at = static_cast<size_t>(peer);
  answers_[at] = {Kind::kAnswer, own};
  answering_.Post(peer, slot_, at * sizeof(Word), sizeof(Word)).IgnoreError();
  if (own.sequence == 0 || own.sequence != word.place.sequence || own == word.place) return;
  abort_(absl::AbortedError(
      absl::StrCat("rank ", peer, " is in ", word.place.Name(), ", this rank in ", own.Name(), " at the same place")));
}

}  // namespace lockstep::worker
