// What OpenSSL says first as a client, for tests.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_SAMPLE_HELLO_H_
#define LOCKSTEP_COMMON_NET_SAMPLE_HELLO_H_

#include <string>

namespace lockstep {

// A ClientHello, another one each time, that asks for the server `name`; "": for none.
std::string SampleHello(const std::string& name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_SAMPLE_HELLO_H_
