#include "worker/profile/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <limits>

namespace lockstep::worker {

std::string Gzip(absl::string_view bytes) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemory = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
    return "";
  }
  std::string out;
  char piece[1 << 16];
  int state = Z_OK;
  while (state == Z_OK) {
    const size_t most = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(most);
    do {
      stream.next_out = reinterpret_cast<Bytef*>(piece);
      stream.avail_out = sizeof piece;
      state = deflate(&stream, most == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
      out.append(piece, sizeof piece - stream.avail_out);
    } while (stream.avail_out == 0);
    bytes.remove_prefix(most);
  }
  deflateEnd(&stream);
  return state == Z_STREAM_END ? out : "";
}

}  // namespace lockstep::worker
