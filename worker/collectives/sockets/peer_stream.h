// A connection between two ranks after the prelude (peer_secret.h): first a TLS 1.3 handshake with a pre-shared key, by
// which each end proves that it has the key, then a stream of bytes, encrypted or plain. Nothing here blocks.
//
// An encrypted stream is authenticated throughout. Of a plain stream only the handshake is: an attacker on the network
// path can alter the bytes that follow.
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
  virtual bool encrypts() const = 0;

  // Reads what is available into `into`, in order, and returns the number of bytes. 0: nothing now, poll the socket for
  // more. After any other result bytes may be buffered here for which poll does not report the socket. Unavailable: the
  // other end closed the connection, it broke, or data was altered on the way.
  virtual absl::StatusOr<size_t> Read(absl::Span<const iovec> into) = 0;

  // Accepts bytes of `from`, in order, and returns their number; less than all: try again when the socket is writable.
  // Accepted bytes may be overwritten. Unavailable: the connection broke.
  virtual absl::StatusOr<size_t> Write(absl::Span<const iovec> from) = 0;

  // Sends the bytes that Write accepted and buffered. False: some are left, the socket takes no more now.
  virtual absl::StatusOr<bool> Flush() = 0;
};

// One end's handshake.
class TlsHandshake {
 public:
  virtual ~TlsHandshake() = default;

  enum class Want { kRead, kWrite, kNothing };
  // Proceeds as far as the socket allows. kNothing: done. Unauthenticated: the other end does not have the key.
  // Unavailable: the connection broke.
  virtual absl::StatusOr<Want> Step() = 0;
  virtual int fd() const = 0;
  // REQUIRES: Step returned kNothing. Once.
  virtual std::unique_ptr<PeerStream> Finish() = 0;
};

// `key`: 32 bytes, the same at both ends. `dials`: this end made the connection. `encrypts`: the data after the
// handshake is encrypted. Internal when OpenSSL cannot create a connection.
absl::StatusOr<std::unique_ptr<TlsHandshake>> MakeTlsHandshake(Descriptor socket, const std::string& key, bool dials,
                                                               bool encrypts);

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_PEER_STREAM_H_
