#include "worker/data/image_scale.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "common/status/check.h"

namespace lockstep::worker {
namespace {

// Weights are multiples of 2^-22: a sum of 8-bit values times them fits into 32 bits.
constexpr int kWeightBits = 22;

// Where the pixels lie that one pixel of the result is made of, and their weights.
struct Window {
  int64_t first = 0;
  std::vector<int32_t> weights;
};

std::vector<Window> Windows(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double support = std::max(scale, 1.0);  // enlarging looks at two neighbours
  std::vector<Window> windows(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    Window& window = windows[static_cast<size_t>(i)];
    window.first = std::max<int64_t>(0, static_cast<int64_t>(centre - support + 0.5));
    const int64_t last = std::min(from, static_cast<int64_t>(centre + support + 0.5));
    std::vector<double> exact;
    double sum = 0;
    for (int64_t p = window.first; p < last; ++p) {
      const double distance = std::abs((static_cast<double>(p) - centre + 0.5) * (1.0 / support));
      exact.push_back(std::max(0.0, 1.0 - distance));
      sum += exact.back();
    }
    for (const double weight : exact) {
      window.weights.push_back(static_cast<int32_t>(0.5 + weight / sum * (1 << kWeightBits)));
    }
  }
  return windows;
}

uint8_t Rounded(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

Image ScaleRows(const Image& image, int64_t width) {
  const std::vector<Window> windows = Windows(image.width, width);
  Image scaled{.height = image.height, .width = width, .channels = image.channels};
  scaled.pixels.reserve(static_cast<size_t>(image.height * width * image.channels));
  for (int64_t y = 0; y < image.height; ++y) {
    const uint8_t* const row = image.pixels.data() + y * image.width * image.channels;
    for (const Window& window : windows) {
      for (int64_t c = 0; c < image.channels; ++c) {
        int32_t sum = 1 << (kWeightBits - 1);
        const uint8_t* pixel = row + window.first * image.channels + c;
        for (const int32_t weight : window.weights) {
          sum += *pixel * weight;
          pixel += image.channels;
        }
        scaled.pixels.push_back(Rounded(sum));
      }
    }
  }
  return scaled;
}

Image ScaleColumns(const Image& image, int64_t height) {
  const std::vector<Window> windows = Windows(image.height, height);
  Image scaled{.height = height, .width = image.width, .channels = image.channels};
  const auto row_size = static_cast<size_t>(image.width * image.channels);
  scaled.pixels.reserve(row_size * static_cast<size_t>(height));
  std::vector<int32_t> sums(row_size);
  for (const Window& window : windows) {
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    const uint8_t* row = image.pixels.data() + static_cast<size_t>(window.first) * row_size;
    for (const int32_t weight : window.weights) {
      for (size_t i = 0; i < row_size; ++i) sums[i] += row[i] * weight;
      row += row_size;
    }
    for (const int32_t sum : sums) scaled.pixels.push_back(Rounded(sum));
  }
  return scaled;
}

// To the nearest, halves to the even one.
int64_t HalfOf(int64_t whole) { return whole % 2 == 0 || whole % 4 == 1 ? whole / 2 : whole / 2 + 1; }

}  // namespace

Image ScaleImage(const Image& image, int64_t height, int64_t width) {
  LS_CHECK(height > 0 && width > 0 && image.height > 0 && image.width > 0, "an image has pixels");
  if (width == image.width && height == image.height) return image;
  if (width == image.width) return ScaleColumns(image, height);
  Image rows = ScaleRows(image, width);
  return height == image.height ? rows : ScaleColumns(rows, height);
}

ImageSize ScaledSize(ImageSize from, ImageSize size, int64_t shorter) {
  const bool by_width = shorter > 0 ? from.width <= from.height : from.width * size.height <= from.height * size.width;
  if (by_width) {
    const int64_t width = shorter > 0 ? shorter : size.width;
    return {width * from.height / from.width, width};
  }
  const int64_t height = shorter > 0 ? shorter : size.height;
  return {height, height * from.width / from.height};
}

Image Crop(const Image& image, const ImageRegion& region) {
  const auto& [top, left, size] = region;
  LS_CHECK(top >= 0 && left >= 0 && top + size.height <= image.height && left + size.width <= image.width,
           "the image covers what is taken of it");
  if (image.height == size.height && image.width == size.width) return image;
  Image cropped{.height = size.height, .width = size.width, .channels = image.channels};
  cropped.pixels.reserve(static_cast<size_t>(size.height * size.width * image.channels));
  for (int64_t y = top; y < top + size.height; ++y) {
    const auto begin = image.pixels.begin() + (y * image.width + left) * image.channels;
    cropped.pixels.insert(cropped.pixels.end(), begin, begin + size.width * image.channels);
  }
  return cropped;
}

Image CropCentre(const Image& image, ImageSize size) {
  return Crop(image, {HalfOf(image.height - size.height), HalfOf(image.width - size.width), size});
}

}  // namespace lockstep::worker
