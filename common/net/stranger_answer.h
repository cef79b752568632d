// Shows a chief's certificate to a caller whose ClientHello names no server name of the job (chief_key.h:
// ServerNameOf). A caller with the token of another job thereby learns that it reached the wrong chief, instead of only
// seeing its connection break. Nothing but the TLS handshake is read from it.
//
// Threading: thread-compatible; one StrangerAnswerFactory may make answers for several threads.
#ifndef LOCKSTEP_COMMON_NET_STRANGER_ANSWER_H_
#define LOCKSTEP_COMMON_NET_STRANGER_ANSWER_H_

#include <openssl/types.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/net/chief_key.h"

namespace lockstep {

// One handshake, as the server, over a socket that does not block and stays the caller's.
class StrangerAnswer {
 public:
  // Continues the handshake as far as the socket allows. False when it is over, whether it succeeded or failed.
  bool Advance();

 private:
  friend class StrangerAnswerFactory;
  struct Free {
    void operator()(SSL* ssl) const;
  };
  explicit StrangerAnswer(SSL* ssl) : ssl_(ssl) {}
  std::unique_ptr<SSL, Free> ssl_;
};

class StrangerAnswerFactory {
 public:
  // Internal when OpenSSL rejects the identity.
  static absl::StatusOr<StrangerAnswerFactory> Make(const ChiefIdentity& identity);
  // Begins a handshake. Internal when OpenSSL has no memory. REQUIRES: SIGPIPE is ignored.
  absl::StatusOr<StrangerAnswer> Begin(int socket) const;

 private:
  struct Free {
    void operator()(SSL_CTX* context) const;
  };
  explicit StrangerAnswerFactory(SSL_CTX* context) : context_(context) {}
  std::unique_ptr<SSL_CTX, Free> context_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_STRANGER_ANSWER_H_
