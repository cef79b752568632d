#include "worker/data/token_file.h"

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/status/check.h"
#include "common/status/status_macros.h"
#include "worker/data/byte_source.h"

namespace lockstep::worker {
namespace {

constexpr size_t kHeaderWords = 256;

struct TokenKind {
  int32_t magic;
  int32_t version;
  DType dtype;
};
constexpr TokenKind kShort = {20240520, 1, DType::kU16};
constexpr TokenKind kLong = {20240801, 7, DType::kU32};

using Header = std::array<int32_t, kHeaderWords>;

absl::StatusOr<TokenKind> TokenKindOf(const Header& header, const ByteSource& source) {
  for (const TokenKind& kind : {kShort, kLong}) {
    if (header[0] != kind.magic) continue;
    if (header[1] == kind.version) return kind;
    return source.Bad(4, absl::StrCat("a token file of version ", header[1], "; with the magic ", kind.magic,
                                      " only version ", kind.version, " is known"));
  }
  return source.Bad(
      0, absl::StrCat("no token file: it begins with the int32 ", kShort.magic, " (uint16 tokens) or ", kLong.magic,
                      " (uint32), found ", header[0], "; `lockstep data tokenize --bytes` makes one from a text"));
}

}  // namespace

absl::StatusOr<StoredData> ReadTokenFile(const std::string& path, int64_t sequence_length, const ReadOptions& options,
                                         bool alone) {
  LS_ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path, options.pulse));
  Header header;
  LS_RETURN_IF_ERROR(source.Read(absl::MakeSpan(reinterpret_cast<std::byte*>(header.data()), sizeof(header)),
                                 "the header of 1024 bytes"));
  LS_ASSIGN_OR_RETURN(const TokenKind kind, TokenKindOf(header, source));
  const int64_t count = header[2];
  if (count < 0) return source.Bad(8, absl::StrCat("the header announces ", count, " tokens"));
  const bool labels = options.labels != Labels::kNone;
  const int64_t more = labels ? 1 : 0;
  const int64_t samples = TokenSamples(count, sequence_length, options);
  if (count == 0 || (alone && samples == 0)) {
    return source.Bad(8,
                      absl::StrCat("the file holds ", count, " tokens, and one sample takes ", sequence_length + more,
                                   labels ? " (sequence_length and one more to predict)" : "",
                                   "; give a longer text or a shorter sequence_length"));
  }
  const int64_t bytes = count * DTypeSize(kind.dtype);
  if (bytes > options.memory_limit_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": ", count, " tokens need ", bytes, " bytes and ",
                                                     options.memory_limit_bytes, " are left; raise data.memory"));
  }
  if (bytes > source.MostBytes()) {
    return absl::DataLossError(absl::StrCat(source.At(source.offset()), "the header announces ", count,
                                            " tokens, more than the file can hold; copy the file again"));
  }
  ArrayFile file;
  file.path = path;
  file.data_offset = source.offset();
  file.compressed = source.compressed();
  LS_ASSIGN_OR_RETURN(file.array, Tensor::Create(kind.dtype, {count}));
  LS_RETURN_IF_ERROR(source.Read(file.array.bytes(), "its tokens"));
  LS_RETURN_IF_ERROR(source.ExpectEnd());
  StoredData data;
  data.num_samples = samples;
  data.features.push_back({.name = kInputsField, .array = 0, .sample = {sequence_length}, .tokens = true});
  if (labels) {
    data.label = {.name = kLabelsField, .array = 0, .first = 1, .sample = {sequence_length}, .tokens = true};
  }
  data.arrays.push_back(StoreArray("tokens", std::move(file)));
  return data;
}

int64_t TokenSamples(int64_t tokens, int64_t sequence_length, const ReadOptions& options) {
  return (tokens - (options.labels != Labels::kNone ? 1 : 0)) / sequence_length;
}

std::string TokenFileHeader(int64_t count) {
  LS_CHECK(count >= 0 && count <= kMostTokens, "the header can hold the count");
  const std::array<int32_t, 3> words = {kShort.magic, kShort.version, static_cast<int32_t>(count)};
  std::string bytes(kHeaderWords * sizeof(int32_t), '\0');
  std::memcpy(bytes.data(), words.data(), sizeof(words));
  return bytes;
}

std::string BytesAsTokens(absl::string_view text) {
  std::string bytes(text.size() * 2, '\0');
  for (size_t i = 0; i < text.size(); ++i) bytes[2 * i] = text[i];
  return bytes;
}

}  // namespace lockstep::worker
