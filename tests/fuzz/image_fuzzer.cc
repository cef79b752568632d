// Images: the first four bytes of the input choose how it is scaled and which part is taken, the rest is the file.
#include <algorithm>

#include "tests/fuzz/fuzz_file.h"
#include "worker/data/image_reader.h"

namespace lockstep::worker {
namespace {

constexpr size_t kChoices = 4;
constexpr int64_t kMostFuzzedPixels = 1 << 12;  // what is only large is slow, not wrong

// A part of an image by two numbers below 256.
ImageRegion RegionBy(uint8_t place, uint8_t share, ImageSize size) {
  const ImageSize part{std::max<int64_t>(1, size.height * (share % 16) / 15),
                       std::max<int64_t>(1, size.width * (share / 16) / 15)};
  return {(size.height - part.height) * (place % 16) / 15, (size.width - part.width) * (place / 16) / 15, part};
}

void ReadImage(const uint8_t* choices, absl::string_view bytes) {
  const auto opened = ImageFile::Open(bytes, "fuzz");
  LS_CHECK(opened.ok() || !opened.status().message().empty(), "a refusal says why");
  if (!opened.ok() || (*opened)->pixels() > kMostFuzzedPixels) return;
  const ImageSize wanted{1 + choices[0] % 64, 1 + choices[1] % 64};
  const bool gray = choices[1] > 127;
  const ImageReader reader({.form = {.size = wanted, .shorter = 64, .gray = gray}, .threads = 1, .room = 1});
  const auto region = [&](ImageSize whole) { return RegionBy(choices[2], choices[3], whole); };
  const auto made = reader.Make(bytes, "fuzz");
  const auto part = reader.MakeRegion(bytes, "fuzz", region);
  LS_CHECK(made.ok() || !made.status().message().empty(), "a refusal says why");
  LS_CHECK(part.ok() || !made.ok(), "of an image that is read any part is, too");
  for (const auto* image : {&made, &part}) {
    if (!image->ok()) continue;
    LS_CHECK((*image)->height == wanted.height && (*image)->width == wanted.width, "an image has the size asked for");
    LS_CHECK((*image)->channels == (gray ? 1 : 3), "an image has the channels asked for");
    LS_CHECK((*image)->pixels.size() == static_cast<size_t>(wanted.height * wanted.width * (*image)->channels),
             "an image has its pixels");
  }
}

}  // namespace
}  // namespace lockstep::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < lockstep::worker::kChoices) return 0;
  const auto* const file = reinterpret_cast<const char*>(data) + lockstep::worker::kChoices;
  lockstep::worker::ReadImage(data, {file, size - lockstep::worker::kChoices});
  return 0;
}
