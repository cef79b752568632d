#include "worker/session/chief_link.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace lockstep::worker {

void ChiefLink::Try(absl::Time now) {
  state_ = State::kConnecting;
  last_attempt_ = now;
  ++attempts_;
}

bool ChiefLink::Connected() {
  if (state_ != State::kConnecting) return false;
  state_ = State::kGreeting;
  return true;
}

void ChiefLink::HelloWaits() {
  hello_waits_ = true;
  greeting_end_ = absl::InfiniteFuture();
}

void ChiefLink::HelloSent(absl::Time now) {
  hello_waits_ = false;
  greeting_end_ = now + greeting_limit_;
}

void ChiefLink::Welcomed(Term term) {
  state_ = State::kWelcomed;
  handed_over_ = false;
  greeting_end_ = absl::InfiniteFuture();
  term_ = highest_term_ = term;
}

void ChiefLink::GreetAnew(absl::Time now) {
  down_since_ = now;
  state_ = State::kGreeting;
}

bool ChiefLink::Lost(absl::Time now, absl::Duration retry_interval) {
  // A chief that accepts a stream and never says Welcome is no chief: its attempts do not restart chief_timeout.
  if (welcomed()) down_since_ = now;
  const bool was_there = welcomed() || Is(State::kGreeting);
  state_ = State::kDown;
  hello_waits_ = false;
  greeting_end_ = absl::InfiniteFuture();
  next_connect_ = std::max(now, last_attempt_ + RetryWait(retry_interval));
  return was_there;
}

void ChiefLink::BeatAnswered(absl::Time now, Term term) {
  if (term == term_) heard_ = std::max(heard_, now);
}

// Between half of the longest wait and all of it. Incarnations are random and multiples of the golden ratio spread
// evenly, so that a thousand workers that lost their chief at one instant do not come back at one instant.
absl::Duration ChiefLink::RetryWait(absl::Duration longest) const {
  constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15;  // 2^64 / 1.618...
  const uint64_t place = seed_ + attempts_ * kGoldenRatio;
  return longest * (0.5 + 0.5 * (static_cast<double>(place >> 11) * 0x1p-53));
}

absl::Time ChiefLink::NextDeadline(absl::Duration silence) const {
  switch (state_) {
    case State::kDown:
      return next_connect_;
    case State::kGreeting:
      return greeting_end_;
    case State::kWelcomed:
      return heard_ + silence;
    case State::kConnecting:
      break;
  }
  return absl::InfiniteFuture();
}

std::string ChiefLink::BrokenInvariant() const {
  if (term_ != highest_term_) return absl::StrCat("it follows term ", term_, " after term ", highest_term_);
  if (hello_waits_ && !Is(State::kGreeting)) return "a Hello waits, and there is nobody to greet";
  return "";
}

}  // namespace lockstep::worker
