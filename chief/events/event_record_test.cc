#include "chief/events/event_record.h"

#include <catch2/catch.hpp>
#include <string>

#include "chief/events/event_reading.h"

namespace lockstep::chief {
namespace {

const absl::Time kWritten = absl::FromUnixSeconds(1700000000);

TEST_CASE("event records: a record is TensorFlow's, byte for byte", "[events]") {
  const std::string payload = std::string("\x09\x00\x00\x80\x38\x99\xd6\xd7\x41\x1a\x0d", 11) + "brain.Event:2";
  const std::string head("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12);
  CHECK(EncodeEventRecord(payload) == head + payload + std::string("\x12\x4b\x36\xab", 4));
}

TEST_CASE("event records: a text is a string tensor of the text plugin", "[events]") {
  const auto events = ReadEvents(TextRecord(kWritten, 7, "cluster/changes", "- **worker-1**: lost"));

  REQUIRE(events.size() == 1);
  CHECK(events[0].step() == 7);
  const auto& value = events[0].summary().value(0);
  CHECK(value.tag() == "cluster/changes");
  CHECK(value.metadata().plugin_data().plugin_name() == "text");
  CHECK(value.tensor().dtype() == tensorboard::DT_STRING);
  CHECK(value.tensor().has_tensor_shape());
  CHECK(value.tensor().string_val(0) == "- **worker-1**: lost");
}

TEST_CASE("event records: the first unmarked step is that of the first loss without a start before it", "[events]") {
  CHECK_FALSE(FirstUnmarkedStep("").has_value());
  const std::string others =
      ScalarsRecord(kWritten, 2, {{"evaluation/loss", 1}}) + TextRecord(kWritten, 2, "cluster/changes", "text");
  CHECK_FALSE(FirstUnmarkedStep(others).has_value());
  const std::string losses = ScalarsRecord(kWritten, 3, {{"loss", 1}}) + ScalarsRecord(kWritten, 4, {{"loss", 1}});
  CHECK(FirstUnmarkedStep(others + losses) == 3);
  CHECK(FirstUnmarkedStep(losses + StartRecord(kWritten, 3)) == 3);
  CHECK_FALSE(FirstUnmarkedStep(StartRecord(kWritten, 3) + others + losses).has_value());
}

}  // namespace
}  // namespace lockstep::chief
