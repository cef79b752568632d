#include "chief/events/image_event.h"

#include <png.h>

#include <catch2/catch.hpp>
#include <limits>
#include <string>
#include <vector>

#include "chief/events/event_reading.h"
#include "chief/events/event_record.h"

namespace lockstep::chief {
namespace {

std::vector<int> PixelsOf(const std::string& file, int channels) {
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  REQUIRE(png_image_begin_read_from_memory(&header, file.data(), file.size()) != 0);
  CHECK(header.width == 3);
  CHECK(header.height == 2);
  header.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::vector<unsigned char> bytes(PNG_IMAGE_SIZE(header));
  REQUIRE(png_image_finish_read(&header, nullptr, bytes.data(), 0, nullptr) != 0);
  return {bytes.begin(), bytes.end()};
}

tensorboard::Event EventOf(const std::vector<SampleImage>& images) {
  const std::vector<tensorboard::Event> events =
      ReadEvents(VersionRecord(absl::UnixEpoch()) + ImagesRecord(absl::UnixEpoch(), images));
  REQUIRE(events.size() == 2);
  return events[1];
}

TEST_CASE("image event: grey images are PNGs behind their width and height, over one range of values", "[events]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();

  const auto event = EventOf({{1, 2, 3, {-1, 0, 1, 0, 0, 0}}, {1, 2, 3, {3, nan, 1, 1, 1, 1}}});

  REQUIRE(event.summary().value_size() == 1);
  const auto& value = event.summary().value(0);
  CHECK(event.step() == 0);
  CHECK(value.tag() == "samples/images");
  CHECK(value.metadata().plugin_data().plugin_name() == "images");
  CHECK(value.tensor().tensor_shape().dim(0).size() == 4);
  REQUIRE(value.tensor().string_val_size() == 4);
  CHECK(value.tensor().string_val(0) == "3");
  CHECK(value.tensor().string_val(1) == "2");
  CHECK(PixelsOf(value.tensor().string_val(2), 1) == std::vector<int>{0, 64, 128, 64, 64, 64});
  CHECK(PixelsOf(value.tensor().string_val(3), 1) == std::vector<int>{255, 0, 128, 128, 128, 128});
}

TEST_CASE("image event: the channels of a pixel stand together in a colour image", "[events]") {
  std::vector<float> values(18, 0.0f);
  values[0] = 1;      // red of the first pixel
  values[6 + 1] = 1;  // green of the second
  values[12 + 2] = 1;

  const auto event = EventOf({{3, 2, 3, values}});

  CHECK(PixelsOf(event.summary().value(0).tensor().string_val(2), 3) ==
        std::vector<int>{255, 0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("image event: no images are no record", "[events]") {
  CHECK(ImagesRecord(absl::UnixEpoch(), {}).empty());
  CHECK(PixelsOf(EventOf({{1, 2, 3, {5, 5, 5, 5, 5, 5}}}).summary().value(0).tensor().string_val(2), 1) ==
        std::vector<int>(6, 0));
}

}  // namespace
}  // namespace lockstep::chief
