// A connection between two ranks, after the prelude (peer_secret.h): first a TLS 1.3 handshake with a pre-shared key,
// after which each end knows that the other has it, then a stream of bytes, encrypted or not. Nothing here blocks.
//
// Encrypted, every byte is authenticated too. Not encrypted, only the handshake is: who can change packets on their way
// can change what is sent later.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_STREAM_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_STREAM_H_

#include <sys/uio.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/collectives/sockets/tcp.h"

namespace lockstep::worker {

class PeerStream {
 public:
  virtual ~PeerStream() = default;
  virtual int fd() const = 0;

  // Reads what is there, up to all of `into`, in order; 0: nothing now, and the socket will announce more. Until then
  // bytes may wait here that it does not announce. Unavailable: the other end closed the
  // connection, or it broke, or what came is not what the other end sent.
  virtual absl::StatusOr<size_t> Read(absl::Span<const iovec> into) = 0;

  // Takes bytes of `from`, in order; less than all: no more now. What was taken may be overwritten. Unavailable:
  // broken.
  virtual absl::StatusOr<size_t> Write(absl::Span<const iovec> from) = 0;

  // Sends what Write took and kept. False: not all went, the socket takes no more now.
  virtual absl::StatusOr<bool> Flush() = 0;
};

// The handshake of one end.
class TlsHandshake {
 public:
  virtual ~TlsHandshake() = default;

  enum class Want { kRead, kWrite, kNothing };
  // Goes on as far as the socket allows. kNothing: done. Unauthenticated: the other end does not have the key.
  // Unavailable: the connection broke.
  virtual absl::StatusOr<Want> Step() = 0;
  virtual int fd() const = 0;
  // REQUIRES: Step returned kNothing. Once.
  virtual std::unique_ptr<PeerStream> Finish() = 0;
};

// Internal: OpenSSL refuses to make a connection. `dials`: this end connected to the other. `key`: 32 bytes, the same
// at both ends.
absl::StatusOr<std::unique_ptr<TlsHandshake>> MakeTlsHandshake(Descriptor socket, const std::string& key, bool dials,
                                                               bool encrypts);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_STREAM_H_
