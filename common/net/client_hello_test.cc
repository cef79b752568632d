#include "common/net/client_hello.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/net/sample_hello.h"

namespace lockstep {
namespace {

using State = ClientHello::State;

TEST_CASE("client hello: the server name of OpenSSL's is read, whatever follows it", "[net]") {
  const std::string name = "0123456789abcdef0123456789abcdef.chief.lockstep";
  for (const std::string& behind : {std::string(), std::string("more")}) {
    const ClientHello hello = ReadClientHello(SampleHello(name) + behind);
    CHECK(hello.state == State::kWhole);
    CHECK(hello.server_name == name);
  }
  CHECK(ReadClientHello(SampleHello("")).state == State::kWhole);
  CHECK(ReadClientHello(SampleHello("")).server_name.empty());
}

TEST_CASE("client hello: every beginning of one is partial, down to nothing", "[net]") {
  const std::string whole = SampleHello("name.chief.lockstep");
  for (size_t size = 0; size < whole.size(); ++size) {
    INFO(size);
    CHECK(ReadClientHello(absl::string_view(whole).substr(0, size)).state == State::kPartial);
  }
}

TEST_CASE("client hello: other protocols, other messages and lengths that do not fit are none", "[net]") {
  CHECK(ReadClientHello("GET / HTTP/1.1\r\n\r\n").state == State::kNone);
  CHECK(ReadClientHello("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").state == State::kNone);
  CHECK(ReadClientHello("SSH-2.0-x\r\n").state == State::kNone);
  CHECK(ReadClientHello(std::string("\x16\x02\x00\x00\x10", 5)).state == State::kNone);  // SSL 2
  CHECK(ReadClientHello(std::string("\x16\x03\x01\x00\x03", 5)).state == State::kNone);  // shorter than a message
  CHECK(ReadClientHello(std::string("\x16\x03\x01\x10\x00", 5)).state == State::kNone);  // longer than is taken
  CHECK(ReadClientHello(std::string("\x16\x03\x01\x0f\xfb", 5)).state == State::kPartial);

  const std::string whole = SampleHello("name.chief.lockstep");
  std::string other = whole;
  other[5] = 2;  // a ServerHello
  CHECK(ReadClientHello(other).state == State::kNone);
  std::string longer = whole;
  longer[8] = static_cast<char>(longer[8] + 1);  // the message ends behind its record
  CHECK(ReadClientHello(longer).state == State::kNone);
}

TEST_CASE("client hello: a name is only read from where lengths lead", "[net]") {
  const std::string whole = SampleHello("name.chief.lockstep");
  const size_t at = whole.find("name.chief.lockstep");
  REQUIRE(at != std::string::npos);
  for (const size_t length_at : {at - 1, at - 4, at - 6}) {  // of the name, of the list, of the extension
    for (const int by : {-1, 1}) {
      std::string damaged = whole;
      damaged[length_at] = static_cast<char>(damaged[length_at] + by);
      INFO(absl::StrCat(length_at, " by ", by));
      const ClientHello hello = ReadClientHello(damaged);
      CHECK(hello.server_name != "name.chief.lockstep");
    }
  }
}

}  // namespace
}  // namespace lockstep
