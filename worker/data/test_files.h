// Generates data files for tests: IDX and npy, plain or gzipped, in a directory that is deleted after the test.
//
// Threading: thread-compatible.
#ifndef LOCKSTEP_WORKER_DATA_TEST_FILES_H_
#define LOCKSTEP_WORKER_DATA_TEST_FILES_H_

#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"

namespace lockstep::worker {

class TestFiles {
 public:
  TestFiles() {
    std::string pattern = (std::filesystem::temp_directory_path() / "lockstep_data_XXXXXX").string();
    LS_CHECK(mkdtemp(pattern.data()) != nullptr, "the test's directory can be made");
    directory_ = pattern;
  }
  ~TestFiles() { std::filesystem::remove_all(directory_); }
  TestFiles(const TestFiles&) = delete;
  TestFiles& operator=(const TestFiles&) = delete;

  // Writes `bytes` and returns the path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = directory_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  const std::string& directory() const { return directory_; }

 private:
  std::string directory_;
};

// An IDX file: `type` is 8 for bytes.
inline std::string IdxBytes(uint8_t type, const std::vector<uint32_t>& shape, const std::string& data) {
  std::string out = {'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  for (const uint32_t dimension : shape) {
    for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(dimension >> shift);
  }
  return out + data;
}

// An npy file, version 1.
inline std::string NpyBytes(const std::string& header, const std::string& data) {
  std::string out = "\x93NUMPY";
  out += '\1';
  out += '\0';
  out += static_cast<char>(header.size() & 255);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

inline std::string NpyHeader(const std::string& descr, const std::string& shape) {
  return absl::StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': ", shape, ", }\n");
}

// Deflates `bytes`; zlib's `window_bits`: 31 for a gzip header, -15 for raw deflate.
inline std::string Compress(const std::string& bytes, int window_bits) {
  z_stream stream{};
  LS_CHECK(deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib starts");
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  LS_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, "there is room for all");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

inline std::string Gzip(const std::string& bytes) { return Compress(bytes, 15 + 16); }

// The bytes of values, little-endian.
template <typename T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TEST_FILES_H_
