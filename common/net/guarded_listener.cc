#include "common/net/guarded_listener.h"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/liveness/activity.h"
#include "common/net/client_hello.h"
#include "common/net/socket_name.h"
#include "common/net/token.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"

namespace lockstep {
namespace {

// Of a caller that nobody knows yet: several round trips of a second each.
constexpr absl::Duration kGuestLimit = absl::Seconds(5);
constexpr size_t kMostAnswers = 16;
constexpr int kAnswersPerSecond = 100;
// How many are accepted before those that are here are looked at again.
constexpr int kAcceptedAtOnce = 64;
// How long nobody is accepted when descriptors have run out.
constexpr absl::Duration kBreather = absl::Milliseconds(50);
// Holders of a credential whose connection has not brought a call yet: more wait for them.
constexpr size_t kMostUnproved = 512;
constexpr absl::Duration kUntilNextLook = absl::Milliseconds(5);

// What epoll tells events apart by: the pipe, listeners by number, and guests.
constexpr uint64_t kWake = 0;
constexpr uint64_t kFirstListener = 1;
constexpr uint64_t kFirstGuest = 1000;

bool NoDescriptorsLeft(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

}  // namespace

absl::StatusOr<std::unique_ptr<GuardedListener>> GuardedListener::Listen(const HostPort& place, Options options) {
  LS_ASSIGN_OR_RETURN(const ChiefIdentity identity, ChiefIdentityOf(options.token));
  LS_ASSIGN_OR_RETURN(StrangerAnswerFactory answers, StrangerAnswerFactory::Make(identity));
  LS_ASSIGN_OR_RETURN(Listeners listeners, ListenAt(place));
  return std::unique_ptr<GuardedListener>(
      new GuardedListener(std::move(listeners), std::move(answers), std::move(options)));
}

GuardedListener::GuardedListener(Listeners listeners, StrangerAnswerFactory answers, Options options)
    : options_(std::move(options)),
      names_(ServerNames(options_.token)),
      listeners_(std::move(listeners)),
      answers_(std::move(answers)),
      unproved_(kMostUnproved),
      next_guest_(kFirstGuest) {
  LS_CHECK(options_.most_guests > 0, "somebody may come");
  LS_CHECK(listeners_.sockets.size() < kFirstGuest - kFirstListener, "a host has few addresses");
}

GuardedListener::~GuardedListener() {
  wake_write_.Close();  // the other end becomes readable
  if (thread_.joinable()) thread_.join();
}

void GuardedListener::Start(Admit admit) {
  admit_ = std::move(admit);
  int wake[2];
  LS_CHECK(pipe2(wake, O_CLOEXEC) == 0, "a process that starts has descriptors");
  wake_read_ = Descriptor(wake[0]);
  wake_write_ = Descriptor(wake[1]);
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  LS_CHECK(epoll_.is_open(), "a process that starts has descriptors");
  epoll_event event = {.events = EPOLLIN, .data = {.u64 = kWake}};
  LS_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_read_.get(), &event) == 0, "a pipe can be watched");
  for (size_t i = 0; i < listeners_.sockets.size(); ++i) {
    event = {.events = EPOLLIN, .data = {.u64 = kFirstListener + i}};
    LS_CHECK(epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listeners_.sockets[i].get(), &event) == 0,
             "a socket can be watched");
  }
  thread_ = std::thread([this] { Serve(); });
}

void GuardedListener::Serve() {
  NameThread("chief listener");
  std::array<epoll_event, 64> events;
  for (;;) {
    const absl::Time now = SteadyNow();
    ShowOutLate(now);
    AdmitWaiting();
    absl::Duration wait = guests_.empty() ? absl::InfiniteDuration() : guests_.begin()->second.until - now;
    if (paused_) wait = std::min(wait, kBreather);
    if (!waiting_.empty()) wait = std::min(wait, kUntilNextLook);
    const int timeout = wait == absl::InfiniteDuration() ? -1 : static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1;
    const int ready = epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), timeout);
    if (paused_) Pause(false);
    for (int i = 0; i < ready; ++i) {
      const uint64_t who = events[static_cast<size_t>(i)].data.u64;
      if (who == kWake) return;
      if (who < kFirstGuest) {
        Accept(listeners_.sockets[who - kFirstListener].get());
      } else if (const auto guest = guests_.find(who); guest != guests_.end()) {
        Advance(guest);
      }
    }
  }
}

void GuardedListener::ShowOutLate(absl::Time now) {
  while (!guests_.empty() && now >= guests_.begin()->second.until) {
    ShowOut(guests_.begin(), waiting_.contains(guests_.begin()->first) ? "too many others have shown no credential yet"
                                                                       : "it has said nothing whole in 5 s");
  }
}

void GuardedListener::Accept(int listener) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    Guest guest;
    socklen_t size = sizeof guest.other;
    guest.socket =
        Descriptor(accept4(listener, reinterpret_cast<sockaddr*>(&guest.other), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!guest.socket.is_open()) {
      if (!NoDescriptorsLeft(errno)) return;
      if (guests_.empty()) return Pause(true);
      ShowOut(guests_.begin(), "there are no descriptors left");
      continue;
    }
    guest.listener = listener;
    guest.until = SteadyNow() + kGuestLimit;
    if (guests_.size() >= options_.most_guests) ShowOut(guests_.begin(), "too many came at once");
    Watch(guests_.emplace(next_guest_++, std::move(guest)).first);
  }
}

// Told of each change once: a hello of which a part is there would else keep the thread awake.
void GuardedListener::Watch(Guests::iterator guest) {
  epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data = {.u64 = guest->first}};
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, guest->second.socket.get(), &event) != 0) {
    ShowOut(guest, "it cannot be watched");
  }
}

void GuardedListener::Pause(bool pause) {
  paused_ = pause;
  for (size_t i = 0; i < listeners_.sockets.size(); ++i) {
    epoll_event event = {.events = pause ? 0u : EPOLLIN, .data = {.u64 = kFirstListener + i}};
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listeners_.sockets[i].get(), &event);
  }
}

void GuardedListener::Advance(Guests::iterator guest) {
  if (waiting_.contains(guest->first)) return;
  if (!guest->second.answer.has_value()) return ReadHello(guest);
  if (!guest->second.answer->Advance()) Forget(guest);
}

void GuardedListener::ReadHello(Guests::iterator guest) {
  std::array<char, kMostHelloBytes> bytes;
  const ssize_t size = recv(guest->second.socket.get(), bytes.data(), bytes.size(), MSG_PEEK);
  if (size == 0) return Forget(guest);
  if (size < 0) {
    if (errno != EAGAIN && errno != EINTR) Forget(guest);
    return;
  }
  const ClientHello hello = ReadClientHello({bytes.data(), static_cast<size_t>(size)});
  switch (hello.state) {
    case ClientHello::State::kPartial:
      return;
    case ClientHello::State::kNone:
      return ShowOut(guest, "it does not begin with TLS");
    case ClientHello::State::kWhole:
      break;
  }
  if (!IsNameOfTheJob(hello.server_name)) return AnswerStranger(guest);
  waiting_.insert(guest->first);
  AdmitWaiting();
}

void GuardedListener::AdmitWaiting() {
  while (!waiting_.empty() && unproved_.MakeRoom(SteadyNow())) {
    const auto guest = guests_.find(*waiting_.begin());
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, guest->second.socket.get(), nullptr);
    const int listener = guest->second.listener;
    Descriptor connection = std::move(guest->second.socket);
    Forget(guest);
    Descriptor same(fcntl(connection.get(), F_DUPFD_CLOEXEC, 0));
    if (!same.is_open()) return;  // no descriptors are left: it comes again
    unproved_.Add(SteadyNow(), std::move(same));
    admit_(listener, std::move(connection));
  }
}

void GuardedListener::AnswerStranger(Guests::iterator guest) {
  options_.refused(SocketName(guest->second.other), "it has no credential of this job");
  const absl::Time now = SteadyNow();
  if (now - answers_since_ >= absl::Seconds(1)) {
    answers_since_ = now;
    answers_begun_ = 0;
  }
  if (answering_ >= kMostAnswers || answers_begun_ >= kAnswersPerSecond) return Forget(guest);
  absl::StatusOr<StrangerAnswer> answer = answers_.Begin(guest->second.socket.get());
  if (!answer.ok()) return Forget(guest);
  guest->second.answer = *std::move(answer);
  ++answering_;
  ++answers_begun_;
  Advance(guest);
}

void GuardedListener::ShowOut(Guests::iterator guest, absl::string_view why) {
  // Of one that was answered this was said before.
  if (!guest->second.answer.has_value()) options_.refused(SocketName(guest->second.other), why);
  Forget(guest);
}

void GuardedListener::Forget(Guests::iterator guest) {
  if (guest->second.answer.has_value()) --answering_;
  waiting_.erase(guest->first);
  guests_.erase(guest);  // closes the socket, which ends the watching
}

bool GuardedListener::IsNameOfTheJob(absl::string_view name) const {
  bool found = false;
  for (const std::string& own : names_) found |= SameToken(name, own);
  return found;
}

}  // namespace lockstep
