#include "worker/collectives/sockets/link_closing.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include "common/clock/clock.h"
#include "worker/collectives/sockets/tcp.h"

namespace lockstep::worker {
namespace {

// A connection that is closed while something came and was not read is reset, and takes with it what was sent.
void DrainUntilItCloses(int fd, std::vector<char>& sink, absl::Time until) {
  while (SteadyNow() < until) {
    const ssize_t n = recv(fd, sink.data(), sink.size(), MSG_DONTWAIT);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return;
    if (n < 0 && !AwaitReady(fd, POLLIN, -1, until, "").ok()) return;
  }
}

}  // namespace

void TellAndShutDown(absl::Span<PeerLink* const> links, absl::string_view note, absl::Duration limit) {
  for (PeerLink* link : links) {
    OutgoingFrame frame;
    frame.owned = std::string(note.substr(0, kMostNoteBytes));
    frame.head = {.kind = FrameKind::kNote, .bytes = static_cast<uint32_t>(frame.owned.size())};
    link->Send(std::move(frame));
  }
  const absl::Time until = SteadyNow() + limit;
  std::vector<PeerLink*> telling(links.begin(), links.end());
  for (;;) {
    std::erase_if(telling, [](PeerLink* link) { return !link->Write().ok() || !link->blocked(); });
    if (telling.empty() || SteadyNow() >= until) break;
    (void)AwaitReady(telling.front()->fd(), POLLOUT, -1, SteadyNow() + absl::Milliseconds(1), "");
  }
  for (const PeerLink* link : links) shutdown(link->fd(), SHUT_WR);
  std::vector<char> sink(64 * 1024);
  for (const PeerLink* link : links) DrainUntilItCloses(link->fd(), sink, until);
}

}  // namespace lockstep::worker
