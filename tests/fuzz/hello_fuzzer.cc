// What a stranger says first to a chief: whatever it is, it is read as one thing, and what is whole stays so whatever
// follows.
#include "common/net/client_hello.h"
#include "tests/fuzz/fuzz_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using State = lockstep::ClientHello::State;
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const lockstep::ClientHello hello = lockstep::ReadClientHello(bytes);
  LS_CHECK(hello.server_name.size() < lockstep::kMostHelloBytes, "a name is a part of what was said");
  LS_CHECK(hello.state == State::kWhole || hello.server_name.empty(), "only a whole hello has a name");
  LS_CHECK(hello.state != State::kPartial || size < lockstep::kMostHelloBytes, "nobody is waited for without end");
  const lockstep::ClientHello more = lockstep::ReadClientHello(std::string(bytes) + "x");
  LS_CHECK(hello.state == State::kPartial || (more.state == hello.state && more.server_name == hello.server_name),
           "what follows changes nothing");
  const lockstep::ClientHello less = lockstep::ReadClientHello(bytes.substr(0, size / 2));
  LS_CHECK(less.state != State::kNone || hello.state == State::kNone, "what begins badly does not get better");
  return 0;
}
