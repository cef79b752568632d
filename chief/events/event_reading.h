// Reads an event file as TensorBoard does, for tests: checks both CRCs of every record.
//
// Threading: thread-safe (stateless); tests only.
#ifndef LOCKSTEP_CHIEF_EVENTS_EVENT_READING_H_
#define LOCKSTEP_CHIEF_EVENTS_EVENT_READING_H_

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "common/digest/crc32c.h"
#include "protos/tensorboard.pb.h"

namespace lockstep::chief {

// The complete records of a file; a torn one at its end, which a killed chief leaves, is skipped. `power_lost`: a
// record with a wrong CRC ends the file too, as in TensorBoard.
inline std::vector<tensorboard::Event> ReadEvents(const std::string& bytes, bool power_lost = false) {
  std::vector<tensorboard::Event> events;
  for (size_t at = 0; bytes.size() - at >= 16;) {
    uint64_t length = 0;
    uint32_t length_crc = 0, data_crc = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&length_crc, bytes.data() + at + 8, 4);
    if (power_lost && length_crc != MaskCrc32c(Crc32c(bytes.substr(at, 8)))) break;
    REQUIRE(length_crc == MaskCrc32c(Crc32c(bytes.substr(at, 8))));
    if (length > bytes.size() - at - 16) break;
    const std::string data = bytes.substr(at + 12, length);
    std::memcpy(&data_crc, bytes.data() + at + 12 + length, 4);
    if (power_lost && data_crc != MaskCrc32c(Crc32c(data))) break;
    REQUIRE(data_crc == MaskCrc32c(Crc32c(data)));
    REQUIRE(events.emplace_back().ParseFromString(data));
    at += 16 + length;
  }
  return events;
}

}  // namespace lockstep::chief

#endif  // LOCKSTEP_CHIEF_EVENTS_EVENT_READING_H_
