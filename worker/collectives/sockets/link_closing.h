// Closes the connections of a broken communicator after sending the peers the reason.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_LINK_CLOSING_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_LINK_CLOSING_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collectives/sockets/peer_link.h"

namespace lockstep::worker {

// Longer notes are truncated.
inline constexpr size_t kMostNoteBytes = 4096;

// Sends every peer the note, shuts down sending, and reads until the peers close too: closing with unread data would
// reset the connection and lose the note. Blocks until all have closed or `limit` has passed.
// REQUIRES: PeerLink::GiveUp was called on the links.
void TellAndShutDown(absl::Span<PeerLink* const> links, absl::string_view note, absl::Duration limit);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_LINK_CLOSING_H_
