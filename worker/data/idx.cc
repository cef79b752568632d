#include <array>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/status/status_macros.h"
#include "worker/data/array_header.h"

namespace lockstep::worker {
namespace {

std::optional<DType> IdxType(std::byte code) {
  switch (static_cast<uint8_t>(code)) {
    case 0x08:
      return DType::kU8;
    case 0x09:
      return DType::kI8;
    case 0x0B:
      return DType::kI16;
    case 0x0C:
      return DType::kI32;
    case 0x0D:
      return DType::kF32;
    case 0x0E:
      return DType::kF64;
    default:
      return std::nullopt;
  }
}

}  // namespace

bool IsIdxMagic(const Magic& magic) {
  return magic[0] == std::byte{0} && magic[1] == std::byte{0} && IdxType(magic[2]).has_value();
}

absl::StatusOr<ArrayHeader> ReadIdxHeader(const Magic& magic, ByteSource& source) {
  const std::optional<DType> dtype = IdxType(magic[2]);
  if (magic[0] != std::byte{0} || magic[1] != std::byte{0} || !dtype.has_value()) {
    return source.Bad(0, "no IDX file: it begins with two zero bytes and an element type of 8, 9, 11, 12, 13 or 14");
  }
  const int rank = static_cast<int>(magic[3]);
  if (rank < 1 || rank > 8)
    return source.Bad(3, absl::StrCat("an IDX array of 1 to 8 dimensions was expected, found ", rank));
  ArrayHeader header{.dtype = *dtype, .shape = {}, .big_endian = true};
  for (int i = 0; i < rank; ++i) {
    std::array<std::byte, 4> bytes;
    LS_RETURN_IF_ERROR(source.Read(absl::MakeSpan(bytes), "the IDX header"));
    uint32_t dimension = 0;
    for (const std::byte b : bytes) dimension = (dimension << 8) | static_cast<uint32_t>(b);
    header.shape.push_back(dimension);
  }
  return header;
}

}  // namespace lockstep::worker
