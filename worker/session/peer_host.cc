#include "worker/session/peer_host.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/clock/clock.h"
#include "common/job_place/job_place.h"
#include "common/net/rpc.h"
#include "common/status/status_macros.h"
#include "common/storage/descriptor.h"

namespace lockstep::worker {
namespace {

constexpr timespec kAddressPause{.tv_sec = 0, .tv_nsec = 50'000'000};
constexpr timespec kAddressPauseOfRemote{.tv_sec = 1,
                                         .tv_nsec = 0};  // buckets and etcd, whose answers cost time and money

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

// The loopback address of its kind, where `to` is one; else "". Loopback needs no route: it may even be down, where
// chief and worker talk by a socket.
std::string OwnLoopback(const addrinfo& to) {
  if (to.ai_family == AF_INET) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(to.ai_addr);
    return (ntohl(address->sin_addr.s_addr) >> 24) == IN_LOOPBACKNET ? "127.0.0.1" : "";
  }
  if (to.ai_family != AF_INET6) return "";
  const auto* address = reinterpret_cast<const sockaddr_in6*>(to.ai_addr);
  return IN6_IS_ADDR_LOOPBACK(&address->sin6_addr) ? "::1" : "";
}

// Of this end of a connection to `to`; "" when no route leads there. A datagram socket connects without a packet.
std::string OwnEnd(const addrinfo& to) {
  const Descriptor descriptor(socket(to.ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!descriptor.is_open() || connect(descriptor.get(), to.ai_addr, to.ai_addrlen) != 0) return "";
  sockaddr_storage own = {};
  socklen_t bytes = sizeof own;
  char host[NI_MAXHOST] = {};
  if (getsockname(descriptor.get(), reinterpret_cast<sockaddr*>(&own), &bytes) != 0) return "";
  if (getnameinfo(reinterpret_cast<sockaddr*>(&own), bytes, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0)
    return "";
  return host;
}

}  // namespace

absl::StatusOr<std::string> AddressTowards(const std::string& chief) {
  LS_ASSIGN_OR_RETURN(const HostPort place, ParseHostPort(chief));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(place.host.c_str(), absl::StrCat(place.port).c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  if (code != 0) {
    return absl::UnavailableError(absl::StrCat("the chief's host ", place.host, " is not known: ", gai_strerror(code)));
  }
  int error = 0;
  for (const addrinfo* to = found; to != nullptr; to = to->ai_next) {
    std::string own = OwnLoopback(*to);
    if (own.empty()) own = OwnEnd(*to);
    if (!own.empty()) return own;
    error = errno;
  }
  return absl::UnavailableError(absl::StrCat("no route leads to the chief at ", chief, " (", std::strerror(error),
                                             "); --peer-host says at which address other workers reach this one"));
}

absl::StatusOr<std::string> AwaitAddressTowards(const ChiefLocation& location, absl::Duration limit,
                                                const sigset_t& signals) {
  const ChiefClient client(location);
  const timespec& pause = !location.etcd.empty() || IsInBucket(location.file) ? kAddressPauseOfRemote : kAddressPause;
  const absl::Time begin = SteadyNow();
  for (;;) {
    absl::StatusOr<std::string> own = client.Address();
    if (own.ok()) own = AddressTowards(*own);
    if (own.ok() || absl::IsInvalidArgument(own.status()) || SteadyNow() - begin >= limit) return own;
    const int signal = sigtimedwait(&signals, nullptr, &pause);
    if (signal > 0 && signal != SIGUSR1) return absl::CancelledError("asked to leave before it joined");
  }
}

}  // namespace lockstep::worker
