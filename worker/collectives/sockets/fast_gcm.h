// AES-128-GCM of Intel's ipsec-mb as an OpenSSL provider. OpenSSL still implements TLS; its records are encrypted three
// times as fast as by OpenSSL 3.0, which does not use the wide AES instructions (VAES). The bytes on the wire are the
// same, so the other end need not use it too.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_FAST_GCM_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_FAST_GCM_H_

#include <openssl/types.h>

namespace lockstep::worker {

// An OpenSSL library context that includes this provider. Null where the CPU lacks VAES: use the default context. Lives
// until the process ends.
OSSL_LIB_CTX* FastGcmLibrary();

// The property query that prefers this provider and takes other algorithms from OpenSSL's own.
inline constexpr char kFastGcmProperties[] = "?provider=ipsec-mb";

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_FAST_GCM_H_
