#include "worker/collectives/sockets/peer_probe.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/status/status_macros.h"
#include "worker/collectives/sockets/peer_secret.h"
#include "worker/collectives/sockets/probe_answer.h"
#include "worker/collectives/sockets/tcp.h"

namespace lockstep::worker {

absl::Status ProbePeer(const std::string& address, Incarnation expected, absl::Duration limit, int cancel) {
  const absl::Time until = SteadyNow() + std::min(limit, absl::Hours(1));
  LS_ASSIGN_OR_RETURN(const sockaddr_in target, ResolveAddress(address));
  const std::string what = absl::StrCat("probing ", address);
  LS_ASSIGN_OR_RETURN(const Descriptor fd, ConnectTo(target, cancel, until, what));
  const std::string question = ProbePrelude();
  // Fits into an empty send buffer.
  if (send(fd.get(), question.data(), question.size(), MSG_NOSIGNAL) < 0) return SystemError(what);
  std::string answer;
  while (answer.size() < kProbeAnswerBytes) {
    LS_RETURN_IF_ERROR(AwaitReady(fd.get(), POLLIN, cancel, until, what));
    char bytes[kProbeAnswerBytes];
    const ssize_t n = recv(fd.get(), bytes, kProbeAnswerBytes - answer.size(), 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return SystemError(what);
    if (n == 0) break;
    answer.append(bytes, static_cast<size_t>(n));
  }
  const std::optional<Incarnation> found = IncarnationIn(answer);
  if (!found.has_value()) return absl::FailedPreconditionError(absl::StrCat(what, ": no worker answers there"));
  if (*found != expected) {
    return absl::FailedPreconditionError(
        absl::StrCat(what, ": incarnation ", found->ToString(), " answers, expected ", expected.ToString()));
  }
  return absl::OkStatus();
}

absl::Status CanListen(const std::string& host) { return ListenOn(host).status(); }

}  // namespace lockstep::worker
