#include "worker/data/image_file.h"

#include <png.h>
#include <turbojpeg.h>

#include <memory>
#include <type_traits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kColours = 3;

absl::Status Corrupt(const std::string& path, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(path, ": the image is truncated or corrupt: ", why));
}

absl::Status CheckSize(const std::string& path, int64_t height, int64_t width, int64_t most_pixels) {
  if (height * width <= most_pixels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": the image has ", height, " x ", width, " pixels; at most ", most_pixels, " are read"));
}

Image Make(int64_t height, int64_t width, int64_t channels) {
  Image image{.height = height, .width = width, .channels = channels};
  image.pixels.resize(static_cast<size_t>(height * width * channels));
  return image;
}

absl::StatusOr<Image> DecodeJpeg(absl::string_view bytes, const std::string& path, int64_t most_pixels) {
  const std::unique_ptr<void, int (*)(void*)> decoder(tjInitDecompress(), &tjDestroy);
  if (decoder == nullptr) return absl::ResourceExhaustedError("no memory for a JPEG decoder");
  const auto* const data = reinterpret_cast<const unsigned char*>(bytes.data());
  int width = 0, height = 0, sampling = 0, space = 0;
  if (tjDecompressHeader3(decoder.get(), data, bytes.size(), &width, &height, &sampling, &space) != 0) {
    return Corrupt(path, tjGetErrorStr2(decoder.get()));
  }
  if (space == TJCS_CMYK || space == TJCS_YCCK) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the image is CMYK; save it as RGB"));
  }
  LS_RETURN_IF_ERROR(CheckSize(path, height, width, most_pixels));
  Image image = Make(height, width, kColours);
  // A warning may be of bytes that mean nothing, or of an image that came out black: the library does not tell which.
  if (tjDecompress2(decoder.get(), data, bytes.size(), image.pixels.data(), width, /*pitch=*/0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0) {
    return Corrupt(path, tjGetErrorStr2(decoder.get()));
  }
  return image;
}

uint32_t BigEndian32(absl::string_view bytes) {
  uint32_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<uint8_t>(byte);
  return value;
}

// Without the chunks by which libpng would change colours to those of sRGB; Pillow gives them as they are stored. What
// is no chunk is left for libpng to refuse.
std::string WithoutColourSpace(absl::string_view bytes) {
  constexpr size_t kSignature = 8, kAround = 12;  // length, type and check of a chunk
  std::string kept(bytes.substr(0, kSignature));
  size_t at = kept.size();
  while (bytes.size() - at >= kAround) {
    const size_t length = BigEndian32(bytes.substr(at, 4));
    const absl::string_view type = bytes.substr(at + 4, 4);
    if (length > bytes.size() - at - kAround) break;
    if (type != "gAMA" && type != "cHRM" && type != "sRGB" && type != "iCCP") {
      absl::StrAppend(&kept, bytes.substr(at, length + kAround));
    }
    at += length + kAround;
  }
  absl::StrAppend(&kept, bytes.substr(at));
  return kept;
}

absl::StatusOr<Image> DecodePng(absl::string_view stored, const std::string& path, int64_t most_pixels) {
  const std::string bytes = WithoutColourSpace(stored);
  png_image png = {};
  png.version = PNG_IMAGE_VERSION;
  const std::unique_ptr<png_image, void (*)(png_image*)> freed(&png, &png_image_free);
  if (png_image_begin_read_from_memory(&png, bytes.data(), bytes.size()) == 0) return Corrupt(path, png.message);
  if ((png.format & PNG_FORMAT_FLAG_LINEAR) != 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": the image has 16 bits per channel; save it with 8"));
  }
  LS_RETURN_IF_ERROR(CheckSize(path, png.height, png.width, most_pixels));
  png.format = PNG_FORMAT_RGBA;
  std::vector<uint8_t> read(PNG_IMAGE_SIZE(png));
  if (png_image_finish_read(&png, /*background=*/nullptr, read.data(), /*row_stride=*/0, /*colormap=*/nullptr) == 0) {
    return Corrupt(path, png.message);
  }
  Image image = Make(png.height, png.width, kColours);
  for (size_t i = 0, pixels = read.size() / 4; i < pixels; ++i) {
    for (size_t c = 0; c < kColours; ++c) image.pixels[i * kColours + c] = read[i * 4 + c];
  }
  return image;
}

// With the weights of ITU-R BT.601 in 16 bits, as Pillow's convert("L").
Image Gray(const Image& colours) {
  Image gray = Make(colours.height, colours.width, 1);
  for (size_t i = 0; i < gray.pixels.size(); ++i) {
    const uint8_t* const pixel = &colours.pixels[i * kColours];
    const uint32_t sum = pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u;
    gray.pixels[i] = static_cast<uint8_t>(sum >> 16);
  }
  return gray;
}

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::string_view bytes, const std::string& path, bool gray, int64_t most_pixels) {
  absl::StatusOr<Image> image = absl::InvalidArgumentError(absl::StrCat(path, ": is neither a JPEG nor a PNG image"));
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) image = DecodeJpeg(bytes, path, most_pixels);
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) image = DecodePng(bytes, path, most_pixels);
  if (!image.ok() || !gray) return image;
  return Gray(*image);
}

}  // namespace lockstep::worker
