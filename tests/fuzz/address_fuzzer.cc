// Addresses that a file or a command names. What is accepted is written as it is read.
#include "common/net/rpc.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto address = lockstep::ParseHostPort({reinterpret_cast<const char*>(data), size});
  if (!address.ok()) {
    LS_CHECK(!address.status().message().empty(), "a refusal says why");
    return 0;
  }
  LS_CHECK(address->port >= 0 && address->port <= 65535 && !address->host.empty(), "an address has a host and a port");
  const auto again = lockstep::ParseHostPort(address->ToString());
  LS_CHECK(again.ok() && again->host == address->host && again->port == address->port, "and is written as it is read");
  return 0;
}
