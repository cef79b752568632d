#include <array>
#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/status/status_macros.h"
#include "worker/data/array_header.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kLargestHeader = 1 << 16;

// Reads the dictionary of an npy header: {'descr': '<f4', 'fortran_order': False, 'shape': (60000, 28, 28), }.
class HeaderParser {
 public:
  HeaderParser(absl::string_view text, int64_t offset, const ByteSource& source)
      : text_(text), rest_(text), offset_(offset), source_(source) {}

  absl::StatusOr<ArrayHeader> Parse() {
    if (!Take("{")) return Fail("a dictionary was expected");
    while (!Take("}")) {
      std::string key;
      if (!TakeText(&key) || !Take(":")) return Fail("a key in quotes and a colon were expected");
      LS_RETURN_IF_ERROR(Value(key));
      if (!Take(",") && (Skip(), rest_.empty() || rest_[0] != '}')) return Fail("a comma or } was expected");
    }
    Skip();
    if (!rest_.empty()) return Fail("nothing more was expected");
    if (!has_descr_ || !has_order_ || !has_shape_) return Fail("descr, fortran_order and shape must all be there");
    return header_;
  }

 private:
  void Skip() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }

  bool Take(absl::string_view token) {
    Skip();
    return absl::ConsumePrefix(&rest_, token);
  }

  bool TakeText(std::string* out) {
    Skip();
    if (rest_.empty() || (rest_[0] != '\'' && rest_[0] != '"')) return false;
    const size_t end = rest_.find(rest_[0], 1);
    if (end == absl::string_view::npos) return false;
    *out = std::string(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return true;
  }

  absl::Status Value(const std::string& key) {
    if (key == "descr" && !has_descr_) {
      has_descr_ = true;
      return Type();
    }
    if (key == "fortran_order" && !has_order_) {
      has_order_ = true;
      if (Take("False")) return absl::OkStatus();
      if (!Take("True")) return Fail("True or False was expected");
      return Fail("the array is in Fortran order; save numpy.ascontiguousarray(x) instead");
    }
    if (key == "shape" && !has_shape_) {
      has_shape_ = true;
      return Dimensions();
    }
    return Fail(absl::StrCat("the key '", key, "' is unknown or there twice"));
  }

  absl::Status Type() {
    std::string text;
    if (!TakeText(&text)) return Fail("an array of one simple type was expected, not a structured one");
    struct Entry {
      absl::string_view name;
      DType dtype;
    };
    static constexpr std::array<Entry, 12> kTypes = {{{"b1", DType::kU8},
                                                      {"u1", DType::kU8},
                                                      {"i1", DType::kI8},
                                                      {"u2", DType::kU16},
                                                      {"i2", DType::kI16},
                                                      {"u4", DType::kU32},
                                                      {"i4", DType::kI32},
                                                      {"u8", DType::kU64},
                                                      {"i8", DType::kI64},
                                                      {"f2", DType::kF16},
                                                      {"f4", DType::kF32},
                                                      {"f8", DType::kF64}}};
    for (const Entry& entry : kTypes) {
      if (text.size() != 3 || absl::string_view(text).substr(1) != entry.name) continue;
      const bool one_byte = entry.name[1] == '1';
      if (text[0] != '<' && text[0] != '>' && !(one_byte && text[0] == '|')) break;
      header_.dtype = entry.dtype;
      header_.big_endian = text[0] == '>';
      return absl::OkStatus();
    }
    return Fail(absl::StrCat("element type '", text,
                             "' is not supported; use bool, an integer type, float16, float32 or float64"));
  }

  absl::Status Dimensions() {
    if (!Take("(")) return Fail("a shape was expected");
    while (!Take(")")) {
      Skip();
      size_t digits = 0;
      while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) ++digits;
      int64_t dimension = 0;
      if (!absl::SimpleAtoi(rest_.substr(0, digits), &dimension)) return Fail("a dimension was expected");
      rest_.remove_prefix(digits);
      header_.shape.push_back(dimension);
      if (header_.shape.size() > 8) return Fail("more than 8 dimensions");
      if (!Take(",") && (Skip(), rest_.empty() || rest_[0] != ')')) return Fail("a comma or ) was expected");
    }
    if (header_.shape.empty()) return Fail("the array has no dimensions; the first counts the samples");
    return absl::OkStatus();
  }

  absl::Status Fail(absl::string_view message) const {
    return source_.Bad(offset_ + static_cast<int64_t>(text_.size() - rest_.size()),
                       absl::StrCat("npy header: ", message));
  }

  absl::string_view text_;
  absl::string_view rest_;
  int64_t offset_;
  const ByteSource& source_;
  ArrayHeader header_;
  bool has_descr_ = false;
  bool has_order_ = false;
  bool has_shape_ = false;
};

}  // namespace

bool IsNpyMagic(const Magic& magic) {
  return magic[0] == std::byte{0x93} && magic[1] == std::byte{'N'} && magic[2] == std::byte{'U'} &&
         magic[3] == std::byte{'M'};
}

absl::StatusOr<ArrayHeader> ReadNpyHeader(ByteSource& source) {
  std::array<std::byte, 4> start;
  LS_RETURN_IF_ERROR(source.Read(absl::MakeSpan(start), "the npy header"));
  if (start[0] != std::byte{'P'} || start[1] != std::byte{'Y'})
    return source.Bad(4, "no npy file: expected \\x93NUMPY");
  const int version = static_cast<int>(start[2]);
  if (version < 1 || version > 3) return source.Bad(6, absl::StrCat("npy version ", version, " is not known"));
  std::array<std::byte, 4> length_bytes{};
  const size_t length_size = version == 1 ? 2 : 4;
  LS_RETURN_IF_ERROR(source.Read(absl::MakeSpan(length_bytes.data(), length_size), "the npy header"));
  int64_t length = 0;
  for (size_t i = length_size; i-- > 0;) length = (length << 8) | static_cast<int64_t>(length_bytes[i]);
  if (length > kLargestHeader) {
    return source.Bad(8, absl::StrCat("an npy header of ", length, " bytes; at most ", kLargestHeader, " are allowed"));
  }
  const int64_t offset = source.offset();
  std::string text(static_cast<size_t>(length), '\0');
  LS_RETURN_IF_ERROR(
      source.Read(absl::MakeSpan(reinterpret_cast<std::byte*>(text.data()), text.size()), "the npy header"));
  return HeaderParser(text, offset, source).Parse();
}

}  // namespace lockstep::worker
