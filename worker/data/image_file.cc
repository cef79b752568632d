#include "worker/data/image_file.h"

#include <png.h>
#include <turbojpeg.h>

#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kColours = 3;

class JpegFile : public ImageFile {
 public:
  JpegFile(absl::string_view bytes, std::string path) : ImageFile(bytes, std::move(path)) {}

  absl::Status ReadHeader() {
    if (decoder_ == nullptr) return absl::ResourceExhaustedError("no memory for a JPEG decoder");
    int width = 0, height = 0, sampling = 0, space = 0;
    if (tjDecompressHeader3(decoder_.get(), data(), bytes_.size(), &width, &height, &sampling, &space) != 0) {
      return Corrupt(tjGetErrorStr2(decoder_.get()));
    }
    if (space == TJCS_CMYK || space == TJCS_YCCK) {
      return absl::InvalidArgumentError(absl::StrCat(path_, ": the image is CMYK; save it as RGB"));
    }
    return SetSize(height, width);
  }

 private:
  absl::StatusOr<Image> DecodeColours() override {
    Image image = MakeColours();
    // A warning may be of bytes that mean nothing, or of an image that came out black: the library does not tell which.
    if (tjDecompress2(decoder_.get(), data(), bytes_.size(), image.pixels.data(), static_cast<int>(width_), /*pitch=*/0,
                      static_cast<int>(height_), TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
      return Corrupt(tjGetErrorStr2(decoder_.get()));
    }
    return image;
  }

  const unsigned char* data() const { return reinterpret_cast<const unsigned char*>(bytes_.data()); }

  const std::unique_ptr<void, int (*)(void*)> decoder_{tjInitDecompress(), &tjDestroy};
};

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

class PngFile : public ImageFile {
 public:
  PngFile(absl::string_view bytes, std::string path)
      : ImageFile(bytes, std::move(path)), kept_(WithoutColourSpace(bytes)) {
    png_.version = PNG_IMAGE_VERSION;
  }
  ~PngFile() override { png_image_free(&png_); }

  absl::Status ReadHeader() {
    if (png_image_begin_read_from_memory(&png_, kept_.data(), kept_.size()) == 0) return Corrupt(png_.message);
    if ((png_.format & PNG_FORMAT_FLAG_LINEAR) != 0) {
      return absl::InvalidArgumentError(absl::StrCat(path_, ": the image has 16 bits per channel; save it with 8"));
    }
    return SetSize(png_.height, png_.width);
  }

 private:
  absl::StatusOr<Image> DecodeColours() override {
    png_.format = PNG_FORMAT_RGBA;
    std::vector<uint8_t> read(PNG_IMAGE_SIZE(png_));
    if (png_image_finish_read(&png_, /*background=*/nullptr, read.data(), /*row_stride=*/0, /*colormap=*/nullptr) ==
        0) {
      return Corrupt(png_.message);
    }
    Image image = MakeColours();
    for (size_t i = 0, pixels = read.size() / 4; i < pixels; ++i) {
      for (size_t c = 0; c < kColours; ++c) image.pixels[i * kColours + c] = read[i * 4 + c];
    }
    return image;
  }

  const std::string kept_;
  png_image png_ = {};
};

// With the weights of ITU-R BT.601 in 16 bits, as Pillow's convert("L").
Image Gray(const Image& colours) {
  Image gray{.height = colours.height, .width = colours.width, .channels = 1};
  gray.pixels.resize(static_cast<size_t>(colours.height * colours.width));
  for (size_t i = 0; i < gray.pixels.size(); ++i) {
    const uint8_t* const pixel = &colours.pixels[i * kColours];
    const uint32_t sum = pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u;
    gray.pixels[i] = static_cast<uint8_t>(sum >> 16);
  }
  return gray;
}

template <typename Kind>
absl::StatusOr<std::unique_ptr<ImageFile>> OpenAs(absl::string_view bytes, const std::string& path) {
  auto file = std::make_unique<Kind>(bytes, path);
  LS_RETURN_IF_ERROR(file->ReadHeader());
  return file;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ImageFile>> ImageFile::Open(absl::string_view bytes, const std::string& path) {
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return OpenAs<JpegFile>(bytes, path);
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return OpenAs<PngFile>(bytes, path);
  return absl::InvalidArgumentError(absl::StrCat(path, ": is neither a JPEG nor a PNG image"));
}

absl::StatusOr<Image> ImageFile::Decode(bool gray) {
  LS_ASSIGN_OR_RETURN(Image colours, DecodeColours());
  return gray ? Gray(colours) : std::move(colours);
}

absl::Status ImageFile::SetSize(int64_t height, int64_t width) {
  height_ = height;
  width_ = width;
  if (pixels() <= kMostPixels) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": the image has ", height, " x ", width, " pixels; at most ", kMostPixels, " are read"));
}

absl::Status ImageFile::Corrupt(absl::string_view why) const {
  return absl::DataLossError(absl::StrCat(path_, ": the image is truncated or corrupt: ", why));
}

Image ImageFile::MakeColours() const {
  Image image{.height = height_, .width = width_, .channels = kColours};
  image.pixels.resize(static_cast<size_t>(pixels() * kColours));
  return image;
}

}  // namespace lockstep::worker
