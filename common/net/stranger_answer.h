// Shows a chief's certificate to a caller that did not ask for it by a name of the job (chief_key.h: ServerNameOf), so
// that a caller with the token of another job learns that it has come to the wrong chief, and is not left with a
// connection that breaks. Nothing is read from it but its part of the TLS handshake.
//
// Threading: thread-compatible; one StrangerAnswers may make answers for several threads.
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
  // Goes on as far as the socket allows. False: the handshake is over, well or not.
  bool Advance();

 private:
  friend class StrangerAnswers;
  struct Free {
    void operator()(SSL* ssl) const;
  };
  explicit StrangerAnswer(SSL* ssl) : ssl_(ssl) {}
  std::unique_ptr<SSL, Free> ssl_;
};

class StrangerAnswers {
 public:
  // Internal: OpenSSL does not take the identity.
  static absl::StatusOr<StrangerAnswers> Make(const ChiefIdentity& identity);
  // Internal: OpenSSL has no memory. REQUIRES: SIGPIPE is ignored.
  absl::StatusOr<StrangerAnswer> Begin(int socket) const;

 private:
  struct Free {
    void operator()(SSL_CTX* context) const;
  };
  explicit StrangerAnswers(SSL_CTX* context) : context_(context) {}
  std::unique_ptr<SSL_CTX, Free> context_;
};

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_STRANGER_ANSWER_H_
