// Generates the bytes of npz archives and TFRecord files for tests.
//
// Threading: thread-safe (pure functions).
#ifndef LOCKSTEP_WORKER_DATA_TEST_CONTAINERS_H_
#define LOCKSTEP_WORKER_DATA_TEST_CONTAINERS_H_

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest/crc32c.h"
#include "common/status/check.h"
#include "protos/tf_example.pb.h"
#include "worker/data/test_files.h"

namespace lockstep::worker {

inline std::string LittleEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += i < 8 ? static_cast<char>(value >> (8 * i)) : '\0';
  return out;
}

inline std::string Deflate(const std::string& bytes) { return Compress(bytes, -15); }

struct ZipEntry {
  std::string name;
  std::string bytes;
  bool deflated = false;
  bool zip64_local = false;  // sizes in an extra field of the local header, as numpy writes them
};

inline std::string ZipBytes(const std::vector<ZipEntry>& entries, const std::string& comment = "") {
  std::string out;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const std::string stored = entry.deflated ? Deflate(entry.bytes) : entry.bytes;
    const auto crc =
        static_cast<uint32_t>(crc32(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), entry.bytes.size()));
    // Flags, method, time and date, checksum.
    const std::string common =
        LittleEndian(0, 2) + LittleEndian(entry.deflated ? 8 : 0, 2) + LittleEndian(0, 4) + LittleEndian(crc, 4);
    const std::string sizes = LittleEndian(stored.size(), 4) + LittleEndian(entry.bytes.size(), 4);
    const std::string extra = entry.zip64_local
                                  ? LittleEndian(1, 2) + LittleEndian(16, 2) + LittleEndian(entry.bytes.size(), 8) +
                                        LittleEndian(stored.size(), 8)
                                  : "";
    directory += "PK\x01\x02" + LittleEndian(45, 2) + LittleEndian(45, 2) + common + sizes +
                 LittleEndian(entry.name.size(), 2) + LittleEndian(0, 12) + LittleEndian(out.size(), 4) + entry.name;
    out += "PK\x03\x04" + LittleEndian(45, 2) + common + (entry.zip64_local ? std::string(8, '\xff') : sizes) +
           LittleEndian(entry.name.size(), 2) + LittleEndian(extra.size(), 2) + entry.name + extra + stored;
  }
  const std::string count = LittleEndian(entries.size(), 2);
  return out + directory + "PK\x05\x06" + LittleEndian(0, 4) + count + count + LittleEndian(directory.size(), 4) +
         LittleEndian(out.size(), 4) + LittleEndian(comment.size(), 2) + comment;
}

inline std::string RecordBytes(const std::string& data) {
  const std::string length = LittleEndian(data.size(), 8);
  return length + LittleEndian(MaskCrc32c(Crc32c(length)), 4) + data + LittleEndian(MaskCrc32c(Crc32c(data)), 4);
}

// An example with the bytes `image`, the floats `x` and the integers `label`.
inline tf::Example MakeExample(const std::string& image, const std::vector<float>& x,
                               const std::vector<int64_t>& label) {
  tf::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  features["image"].mutable_bytes_list()->add_value(image);
  for (const float value : x) features["x"].mutable_float_list()->add_value(value);
  for (const int64_t value : label) features["label"].mutable_int64_list()->add_value(value);
  return example;
}

}  // namespace lockstep::worker

#endif  // LOCKSTEP_WORKER_DATA_TEST_CONTAINERS_H_
