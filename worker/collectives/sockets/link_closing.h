// Closes the connections of a communicator that broke: the peers are told the reason, if they still read.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_LINK_CLOSING_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_LINK_CLOSING_H_

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "worker/collectives/sockets/peer_link.h"

namespace lockstep::worker {

// Longer notes are cut.
inline constexpr size_t kMostNoteBytes = 4096;

// Sends every peer a note, and then no more; takes in what they had sent until they close as well. Blocks until that is
// so, or `limit` has passed. REQUIRES: the links were told to give up (PeerLink::GiveUp).
void TellAndShutDown(absl::Span<PeerLink* const> links, absl::string_view note, absl::Duration limit);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_LINK_CLOSING_H_
