// Makes ClientHello messages with OpenSSL, for tests.
//
// Threading: thread-safe.
#ifndef LOCKSTEP_COMMON_NET_SAMPLE_HELLO_H_
#define LOCKSTEP_COMMON_NET_SAMPLE_HELLO_H_

#include <string>

namespace lockstep {

// A new ClientHello at each call, with the server name `name`; "": without one.
std::string SampleHello(const std::string& name);

}  // namespace lockstep

#endif  // LOCKSTEP_COMMON_NET_SAMPLE_HELLO_H_
