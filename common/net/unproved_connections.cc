#include "common/net/unproved_connections.h"

#include <poll.h>
#include <sys/socket.h>

#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "common/net/socket_name.h"

namespace lockstep {
namespace {

// gRPC gives up a handshake then (chief_server.cc).
constexpr absl::Duration kMayTake = absl::Seconds(5);

bool IsClosed(const Descriptor& socket) {
  pollfd entry = {.fd = socket.get(), .events = POLLRDHUP, .revents = 0};
  return poll(&entry, 1, 0) > 0 && (entry.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

}  // namespace

bool UnprovedConnections::MakeRoom(absl::Time now) {
  MutexLock lock(&mutex_);
  for (auto at = connections_.begin(); at != connections_.end() && connections_.size() >= most_;) {
    const bool late = now - at->since >= kMayTake;
    if (late) shutdown(at->socket.get(), SHUT_RDWR);
    if (late || IsClosed(at->socket)) {
      by_peer_.erase(at->peer);
      at = connections_.erase(at);
    } else {
      ++at;
    }
  }
  return connections_.size() < most_;
}

void UnprovedConnections::Add(absl::Time now, Descriptor connection) {
  std::string peer = PeerText(PeerOf(connection.get()));
  MutexLock lock(&mutex_);
  if (const auto same = by_peer_.find(peer); same != by_peer_.end()) {  // that one is closed: its port serves again
    connections_.erase(same->second);
    by_peer_.erase(same);
  }
  connections_.push_back({std::move(connection), now, peer});
  by_peer_.emplace(std::move(peer), std::prev(connections_.end()));
}

void UnprovedConnections::Proved(absl::string_view peer) {
  const std::string text = PeerText(peer);
  MutexLock lock(&mutex_);
  const auto found = by_peer_.find(text);
  if (found == by_peer_.end()) return;
  connections_.erase(found->second);
  by_peer_.erase(found);
}

size_t UnprovedConnections::size() const {
  MutexLock lock(&mutex_);
  return connections_.size();
}

std::string PeerText(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  const std::string plain =
      absl::StrReplaceAll(peer, {{"%5B", ""}, {"%5b", ""}, {"%5D", ""}, {"%5d", ""}, {"[", ""}, {"]", ""}});
  const size_t port = plain.rfind(':');
  if (port == std::string::npos) return plain;
  absl::string_view host = absl::string_view(plain).substr(0, port);
  host = host.substr(0, host.find('%'));  // before the zone
  absl::ConsumePrefix(&host, "::ffff:");
  return absl::AsciiStrToLower(absl::StrCat(host, plain.substr(port)));
}

}  // namespace lockstep
