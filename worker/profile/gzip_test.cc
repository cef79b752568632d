#include "worker/profile/gzip.h"

#include <zlib.h>

#include <catch2/catch.hpp>
#include <string>

namespace lockstep::worker {
namespace {

std::string Unpacked(const std::string& file, size_t size) {
  std::string out(size + 1, '\0');
  z_stream stream{};
  REQUIRE(inflateInit2(&stream, 15 + 16) == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(file.data()));
  stream.avail_in = static_cast<uInt>(file.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  CHECK(inflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  inflateEnd(&stream);
  return out;
}

TEST_CASE("gzip: what is packed is unpacked again, whatever its size", "[profile]") {
  std::string text;
  for (const size_t size : {0, 1, 65535, 65536, 1000000}) {
    while (text.size() < size) text.push_back(static_cast<char>(text.size() * text.size() % 251));
    const std::string packed = Gzip(text);
    CAPTURE(size);
    CHECK(Unpacked(packed, size) == text);
  }
  CHECK(Gzip(std::string(1000000, 'a')).size() < 5000);
}

}  // namespace
}  // namespace lockstep::worker
