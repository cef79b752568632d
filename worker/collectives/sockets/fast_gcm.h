// AES-128-GCM by Intel's ipsec-mb, as a provider of OpenSSL: TLS stays OpenSSL's, its records are encrypted three times
// as fast as OpenSSL 3.0 does it, which does not use the wide AES instructions (VAES). What goes over the wire is the
// same, so it does not matter whether the other end has them.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_FAST_GCM_H_
#define LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_FAST_GCM_H_

#include <openssl/types.h>

namespace lockstep::worker {

// Algorithms of OpenSSL with that one among them. Null where the processor lacks VAES: OpenSSL's own context does as
// well. Lives until the process ends.
OSSL_LIB_CTX* FastGcmLibrary();

// What a fetch from that library says to get it, and everything else from where it is.
inline constexpr char kFastGcmProperties[] = "?provider=ipsec-mb";

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_COLLECTIVES_SOCKETS_FAST_GCM_H_
