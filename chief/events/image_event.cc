#include "chief/events/image_event.h"

#include <png.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "chief/events/event_record.h"

namespace lockstep::chief {
namespace {

struct Range {
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();

  unsigned char Grey(float value) const {
    if (!std::isfinite(value) || !(most > least)) return 0;
    return static_cast<unsigned char>(std::lround(255.0 * (value - least) / (most - least)));
  }
};

Range RangeOf(const std::vector<SampleImage>& images) {
  Range range;
  for (const SampleImage& image : images) {
    for (const float value : image.values) {
      if (!std::isfinite(value)) continue;
      range.least = std::min(range.least, value);
      range.most = std::max(range.most, value);
    }
  }
  return range;
}

// Empty when memory does not suffice.
std::string Png(const SampleImage& image, const Range& range) {
  // A pixel's channels stand together there.
  const auto pixels = static_cast<size_t>(image.height * image.width);
  const auto channels = static_cast<size_t>(image.channels);
  std::string bytes(pixels * channels, '\0');
  for (size_t channel = 0; channel < channels; ++channel) {
    for (size_t pixel = 0; pixel < pixels; ++pixel) {
      bytes[pixel * channels + channel] = static_cast<char>(range.Grey(image.values[channel * pixels + pixel]));
    }
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  std::string file(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = file.size();
  const bool written = png_image_write_to_memory(&header, file.data(), &size, /*convert_to_8bit=*/0, bytes.data(),
                                                 /*row_stride=*/0, nullptr) != 0;
  file.resize(written ? size : 0);
  return file;
}

}  // namespace

std::string ImagesRecord(absl::Time now, const std::vector<SampleImage>& images) {
  if (images.empty()) return "";
  tensorboard::Event event = EventAt(now, 0);
  tensorboard::Summary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(kImagesTag);
  value.mutable_metadata()->mutable_plugin_data()->set_plugin_name("images");
  value.mutable_metadata()->set_data_class(tensorboard::DATA_CLASS_BLOB_SEQUENCE);
  tensorboard::Tensor& tensor = *value.mutable_tensor();
  tensor.set_dtype(tensorboard::DT_STRING);
  tensor.mutable_tensor_shape()->add_dim()->set_size(static_cast<int64_t>(images.size()) + 2);
  tensor.add_string_val(absl::StrCat(images[0].width));
  tensor.add_string_val(absl::StrCat(images[0].height));
  const Range range = RangeOf(images);
  for (const SampleImage& image : images) {
    std::string& png = *tensor.add_string_val();
    png = Png(image, range);
    if (png.empty()) return "";
  }
  return EncodeEventRecord(event.SerializeAsString());
}

}  // namespace lockstep::chief
