#include "chief/events/event_writer.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "common/digest/crc32c.h"
#include "common/storage/files.h"
#include "common/storage/memory/memory_storage.h"
#include "protos/tensorboard.pb.h"

namespace lockstep::chief {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1700000000);

// Reads a file as TensorBoard does: checks both CRCs of every record.
std::vector<tensorboard::Event> ReadEvents(const Storage& storage, absl::string_view path) {
  const std::string bytes = ReadWholeFile(storage, path, 1 << 20).value();
  std::vector<tensorboard::Event> events;
  for (size_t at = 0; at < bytes.size();) {
    uint64_t length = 0;
    uint32_t length_crc = 0, data_crc = 0;
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&length_crc, bytes.data() + at + 8, 4);
    REQUIRE(length_crc == MaskCrc32c(Crc32c(bytes.substr(at, 8))));
    REQUIRE(length <= bytes.size() - at - 16);
    const std::string data = bytes.substr(at + 12, length);
    std::memcpy(&data_crc, bytes.data() + at + 12 + length, 4);
    REQUIRE(data_crc == MaskCrc32c(Crc32c(data)));
    REQUIRE(events.emplace_back().ParseFromString(data));
    at += 16 + length;
  }
  return events;
}

TEST_CASE("events: a record is TensorFlow's, byte for byte", "[events]") {
  const std::string payload = std::string("\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d", 11) + "brain.Event:2";
  const std::string head("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12);
  CHECK(EncodeEventRecord(payload) == head + payload + std::string("\x12\x4b\x36\xab", 4));
}

TEST_CASE("events: a file begins with its version, then says where training goes on, then what happened", "[events]") {
  MemoryStorage storage;
  const std::string name = EventFileName(kNow, "alpha", 17, 0);
  CHECK(name == "events.out.tfevents.1700000000.alpha.17.0");
  auto writer = EventWriter::Create(storage, name, kNow).value();

  REQUIRE(writer.Start(kNow, 40).ok());
  REQUIRE(writer.Scalars(kNow + absl::Milliseconds(500), 41, {{"loss", 0.5f}, {"lr", 0.25f}}).ok());
  REQUIRE(writer.Checkpoint(kNow, 50, "checkpoints/step-000000050").ok());
  REQUIRE(writer.Sync().ok());
  storage.Restart(MemoryStorage::Survival::kNothing, 1);

  const auto events = ReadEvents(storage, "events/" + name);
  REQUIRE(events.size() == 4);
  CHECK(events[0].file_version() == "brain.Event:2");
  CHECK(events[1].session_log().status() == tensorboard::SessionLog::START);
  CHECK(events[1].step() == 40);
  CHECK(events[2].wall_time() == 1700000000.5);
  CHECK(events[2].step() == 41);
  CHECK(events[2].summary().value(0).tag() == "loss");
  CHECK(events[2].summary().value(0).simple_value() == 0.5f);
  CHECK(events[2].summary().value(1).tag() == "lr");
  CHECK(events[3].session_log().status() == tensorboard::SessionLog::CHECKPOINT);
  CHECK(events[3].session_log().checkpoint_path() == "checkpoints/step-000000050");
}

TEST_CASE("events: a file is never continued by another process", "[events]") {
  MemoryStorage storage;
  REQUIRE(EventWriter::Create(storage, "e", kNow).ok());
  CHECK(EventWriter::Create(storage, "e", kNow).status().code() == absl::StatusCode::kAlreadyExists);
}

}  // namespace
}  // namespace lockstep::chief
